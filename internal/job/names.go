// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// projectAndName identifies a name.
type projectAndName [2]string

func (m *jobModel) projectAndName() projectAndName {
	return projectAndName{m.ProjectID.ValueString(), m.Name.ValueString()}
}

// ofJob stands for a job among names: a resource owns it, too, so that no other one adopts it under
// another name.
func ofJob(jobID string) projectAndName { return projectAndName{"", jobID} }

// names are what a process knows of the resources that have names. It plans or applies one
// configuration.
type names struct {
	isApplying atomic.Bool // a call has applied something: an apply plans each resource again, and must not fail then (T4)

	mu      sync.Mutex
	owners  map[projectAndName]owner
	creates map[projectAndName]string // by this apply: their jobs, empty while they are not known
	prompts map[projectAndName]string // the hashes of the last write-only prompts, as a refresh has read them
}

// owner is the resource that has a name or a job, as a plan shows it. A host may plan one resource
// more than once.
type owner struct {
	job      string // of the resource, or the one that it replaces; empty if the plan sees a new one
	request  string // what a new resource sends, or the name of one that has a job; empty if the plan does not know it
	keepsJob bool   // it keeps the job
}

// mayBe reports whether two owners may be one resource. The prompt of a new one may become known.
func (o owner) mayBe(other owner) bool {
	return o.job == other.job && (o.request == other.request || o.request == "" || other.request == "")
}

// own makes sure that no other resource has the name, nor the job that the owner keeps or that a
// create has found. Once an apply has begun, its creates stop instead.
func (d *ProviderData) own(plan *jobModel, o owner, found string, diags *diag.Diagnostics) {
	isOnly, name := true, plan.Name.ValueString()
	if name != "" && !plan.ProjectID.IsUnknown() { // else it is unknown, or ignore_changes hides that of an imported job
		isOnly = d.names.own(plan.projectAndName(), o)
	}
	if o.keepsJob {
		found, o.request = o.job, name
	}
	if found != "" {
		isOnly = d.names.own(ofJob(found), o) && isOnly
	}
	if !isOnly && !d.names.isApplying.Load() {
		ErrorAt(diags, path.Root("name"), wording.DuplicateName(name, plan.ProjectID.ValueString()))
	}
}

// own notes the owner of a name, and reports whether there is no other one.
func (n *names) own(name projectAndName, o owner) (isOnly bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if other, isOwned := n.owners[name]; isOwned && !other.mayBe(o) {
		return false
	}
	set(&n.owners, name, o)
	return true
}

// beginCreate notes that a resource with the name is created, and reports whether no other one of
// this apply has the name.
func (n *names) beginCreate(name projectAndName) (isOnly bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, isCreated := n.creates[name]; isCreated || n.owners[name].keepsJob {
		return false
	}
	set(&n.creates, name, "")
	return true
}

// endCreate notes the job of a created resource; empty if there is none.
func (n *names) endCreate(name projectAndName, jobID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if set(&n.creates, name, jobID); jobID == "" {
		delete(n.creates, name)
	}
}

// forgetCreate follows a state that has the job: the apply that created it is over. "terraform
// test" runs several applies in a process.
func (n *names) forgetCreate(name projectAndName, jobID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.creates[name] == jobID {
		delete(n.creates, name)
	}
}

// hasCreated reports whether this apply has created another resource with a job that leaves the
// state.
func (n *names) hasCreated(name projectAndName, jobID string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return jobID != "" && n.creates[name] == jobID
}

// notePrompt notes the hash of the last write-only prompt of a name, or that there is none.
func (n *names) notePrompt(name projectAndName, hash string) {
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
