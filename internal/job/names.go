// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// projectAndName identifies a name.
type projectAndName [2]string

func (m *jobModel) projectAndName() projectAndName {
	return projectAndName{m.ProjectID.ValueString(), m.Name.ValueString()}
}

// names are what a process knows of names and of the jobs that the state has.
type names struct {
	isApplying atomic.Bool // a call has applied something: an apply plans each resource again, and must not fail then

	mu           sync.Mutex
	holders      map[projectAndName]holder
	leaving      map[tenure]bool           // that end in this plan: the resource is destroyed, or gets another name
	predecessors map[projectAndName]string // the jobs that creates replace
	observed     map[string]observed       // jobs in the state, by id
}

// tenure is that of a name by a job, for the object that has adopted it last: another one may have the job, too.
type tenure struct {
	name          projectAndName
	job, adoption string
}

// holder is the resource that has a name, as a plan shows it. A host may plan one resource more than once.
type holder struct {
	job     string // of the resource; empty if it is a new one
	request string // of a new one: what it sends, which tells two apart; empty while that is not known
	tainted bool   // it is planned as a new one, and its job is in the state
	// adoption is that of a tainted one's job: a deposed object may have the job, too.
	adoption string
}

// mayBe reports whether two holders may be one resource. Of a new one, the prompt may become known.
func (h holder) mayBe(other holder) bool {
	isNew := h.job == "" && other.job == ""
	return h == other || isNew && (h.request == "" || other.request == "")
}

// hold notes that a resource has a name. It reports whether the plan may go on: no other resource has the name, or an apply has begun,
// whose create stops.
func (n *names) hold(name projectAndName, h holder) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	had, isHeld := n.holders[name]
	if n.holders == nil {
		n.holders = map[projectAndName]holder{}
	}
	if isHeld && !had.mayBe(h) && !n.leaves(name, had.job) {
		return n.isApplying.Load()
	}
	n.holders[name] = h
	return true
}

// leaves reports whether any object with the job leaves the name.
func (n *names) leaves(name projectAndName, jobID string) bool {
	for t := range n.leaving {
		if t.name == name && t.job == jobID {
			return true
		}
	}
	return false
}

func (n *names) isHeld(name projectAndName, by holder) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	had, isHeld := n.holders[name]
	return isHeld && had == by
}

// leave notes that a job leaves its name. It reports whether a new resource seems to get the name.
func (n *names) leave(name projectAndName, jobID, adoption string) (isTaken bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.leaving == nil {
		n.leaving = map[tenure]bool{}
	}
	n.leaving[tenure{name, jobID, adoption}] = true
	h, isHeld := n.holders[name]
	return isHeld && (h.job == "" || h.job == jobID && h.tainted && h.adoption == adoption) && !n.isApplying.Load()
}

func (n *names) isLeaving(name projectAndName, jobID, adoption string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leaving[tenure{name, jobID, adoption}]
}

// setPredecessor notes that the create of a name replaces a job: with create_before_destroy, nothing else tells the create.
func (n *names) setPredecessor(name projectAndName, jobID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.predecessors == nil {
		n.predecessors = map[projectAndName]string{}
	}
	n.predecessors[name] = jobID
}

func (n *names) predecessor(name projectAndName) (jobID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.predecessors[name]
}

// observed is what the state has of a job.
type observed struct{ name, status string }

// observe notes what the state has of a job.
func (n *names) observe(jobID, name, status string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.observed == nil {
		n.observed = map[string]observed{}
	}
	n.observed[jobID] = observed{name, status}
}

func (n *names) hasFailed(jobID string) bool {
	return n.inState(jobID).status == string(agentapi.StatusFailed)
}

func (n *names) inState(jobID string) observed {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.observed[jobID]
}

// StateRead is called with each object of a state before it is planned: of a tainted object, the plan shows no more than this.
func (d *ProviderData) StateRead(object []byte) {
	var stored struct {
		ID, Name, Status string
		ProjectID        string `json:"project_id"`
	}
	if json.Unmarshal(object, &stored) != nil || stored.ID == "" {
		return
	}
	d.Sender.Journal.InState(stored.ID)
	d.Sender.Journal.HasName(stored.ProjectID, stored.Name)
	d.names.observe(stored.ID, stored.Name, stored.Status)
}
