// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// projectAndName identifies a name.
type projectAndName [2]string

func (m *jobModel) projectAndName() projectAndName {
	return projectAndName{m.ProjectID.ValueString(), m.Name.ValueString()}
}

// ofJob stands for a job among names: a resource holds it, too, so that none adopts it under another name.
func ofJob(jobID string) projectAndName { return projectAndName{"", jobID} }

// names are what a process knows of the resources that have names. It plans or applies one configuration.
type names struct {
	isApplying atomic.Bool // a call has applied something: an apply plans each resource again, and must not fail then

	mu      sync.Mutex
	holders map[projectAndName]holder
	created map[projectAndName]string // by this apply: the jobs, empty while they are not known
	prompts map[projectAndName]string // the hashes of the last write-only prompts, as a refresh has read them
}

// holder is the resource that has a name, as a plan shows it: it stays or is created. A host may plan one resource more than once.
type holder struct {
	job     string // of the resource, or the one that it replaces; empty if the plan sees a new one
	request string // tells two apart: what a new one sends, or else the name, if a job is held; empty while that is not known
	stays   bool   // it keeps the job
}

// mayBe reports whether two holders may be one resource. Of a new one, the prompt may become known.
func (h holder) mayBe(other holder) bool {
	return h.job == other.job && (h.request == other.request || h.request == "" || other.request == "")
}

// holdName makes sure that no other resource has the name.
func (d *ProviderData) holdName(plan *jobModel, h holder, diags *diag.Diagnostics) {
	if plan.Name.ValueString() == "" || plan.ProjectID.IsUnknown() { // it is unknown, or ignore_changes hides that of an imported job
		return
	}
	d.hold(plan.projectAndName(), plan, h, diags)
}

// hold makes sure that no other resource has the name, or the job. Once an apply has begun, its creates stop instead.
func (d *ProviderData) hold(what projectAndName, plan *jobModel, h holder, diags *diag.Diagnostics) {
	if !d.names.hold(what, h) && !d.names.isApplying.Load() {
		validate.ErrorAt(diags, path.Root("name"), wording.DuplicateName(plan.Name.ValueString(), plan.ProjectID.ValueString()))
	}
}

// hold notes that a resource has a name. It reports whether no other resource has it.
func (n *names) hold(name projectAndName, h holder) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if had, isHeld := n.holders[name]; isHeld && !had.mayBe(h) {
		return false
	}
	set(&n.holders, name, h)
	return true
}

// create notes that a resource with the name is created. It reports whether no other one of this apply has the name.
func (n *names) create(name projectAndName) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, isCreated := n.created[name]; isCreated || n.holders[name].stays {
		return false
	}
	set(&n.created, name, "")
	return true
}

// hasCreated notes the job of a created resource, or that there is none.
func (n *names) hasCreated(name projectAndName, jobID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if set(&n.created, name, jobID); jobID == "" {
		delete(n.created, name)
	}
}

// isStored notes that a state has a job: the apply that created it is over. Some CLIs run several in one process, such as those of
// "terraform test".
func (n *names) isStored(name projectAndName, jobID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.created[name] == jobID {
		delete(n.created, name)
	}
}

// isAdopted reports whether this apply has created another resource with a job that leaves the state.
func (n *names) isAdopted(name projectAndName, jobID string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return jobID != "" && n.created[name] == jobID
}

// storePrompt notes the hash of the last write-only prompt of a name, or that there is none.
func (n *names) storePrompt(name projectAndName, hash string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	set(&n.prompts, name, hash)
}

func (n *names) promptOf(name projectAndName) (hash string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.prompts[name]
}

func set[V any](m *map[projectAndName]V, name projectAndName, value V) {
	if *m == nil {
		*m = map[projectAndName]V{}
	}
	(*m)[name] = value
}
