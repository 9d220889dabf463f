// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// projectAndName identifies a name.
type projectAndName [2]string

func (m *jobModel) projectAndName() projectAndName {
	return projectAndName{m.ProjectID.ValueString(), m.Name.ValueString()}
}

// ofJob is the key of a job among the owners of names. A resource that keeps a job owns it, so that
// no other resource gets the same job under another name, for example by a second import.
func ofJob(jobID string) projectAndName { return projectAndName{"", jobID} }

// names are what a process knows of the resources that have names. It plans or applies one
// configuration.
type names struct {
	// isApplying: a Create, Update or Delete has begun. From then on, plans report no error of names,
	// limits or the journal, because it would leave an old object deposed (T4).
	isApplying atomic.Bool

	mu     sync.Mutex
	owners map[projectAndName]owner
	// creates has each name that this apply creates, with its job, or empty while its create runs.
	creates map[projectAndName]string
	prompts map[projectAndName]string // see notePrompt
	// completed has the jobs (ofJob) that a state shows completed, or archived after that: a create that
	// replaces such an object and adopts its job must not take it for one that nobody saw complete.
	completed map[projectAndName]bool
}

// owner is the resource that has a name or a job, as a plan shows it. Terraform may plan a resource
// more than once, so two owners can be the same resource: see mayBe.
type owner struct {
	// job is the resource's job in the state, which it keeps or replaces; empty for a new resource.
	job string
	// id tells apart two owners with the same job, or without one. Of a new resource it is the
	// fingerprint of what it sends, empty while the plan does not know that. Of one that keeps its job,
	// it is the name, in the entry of the job (ofJob): an import may give one job to two names.
	id       string
	keepsJob bool // the plan does not replace the job
}

// mayBe reports whether two owners may be one resource that is planned twice. What a new
// one sends may be unknown to one plan and known to the next, so an empty id equals any other.
func (o owner) mayBe(other owner) bool {
	return o.job == other.job && (o.id == other.id || o.id == "" || other.id == "")
}

// checkOwner makes sure that no other resource has the name, nor the job: the one that the owner
// keeps, or the one that a create has found under the name. Once an apply has begun, it reports no
// error (T4), and beginCreate stops the second create instead.
func (d *ProviderData) checkOwner(plan *jobModel, o owner, found string, diags *diag.Diagnostics) {
	isOnly, name := true, plan.Name.ValueString()
	if name != "" && !plan.ProjectID.IsUnknown() { // else it is unknown, or ignore_changes hides that of an imported job
		isOnly = d.names.own(plan.projectAndName(), o)
	}
	if o.keepsJob {
		found, o.id = o.job, name
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

// endCreate notes the job that a create ended with, for hasCreated. If there is none, the name
// counts as not created.
func (n *names) endCreate(name projectAndName, jobID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if set(&n.creates, name, jobID); jobID == "" {
		delete(n.creates, name)
	}
}

// forgetCreate drops what endCreate has noted, once a state has the job: that apply is over. In
// "terraform test" the next one has the same process, and may destroy the job and release its name.
func (n *names) forgetCreate(name projectAndName, jobID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.creates[name] == jobID {
		delete(n.creates, name)
	}
}

// hasCreated reports whether a create of this apply ended with this job. The Delete of an object
// with the same job, whose address has changed, must then not release the name.
func (n *names) hasCreated(name projectAndName, jobID string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return jobID != "" && n.creates[name] == jobID
}

// notePrompt notes the hash of the last write-only prompt of a name, or that there is none, for
// promptOf: the plan that follows a tainted object gets no private state to read it from (T1).
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

// noteState notes what hasCompleted reports.
func (n *names) noteState(job *shownJob, m *messageMarks) {
	n.mu.Lock()
	defer n.mu.Unlock()
	set(&n.completed, ofJob(job.ID.ValueString()), job.is(agentapi.StatusCompleted) || m.WasCompleted)
}

// hasCompleted reports whether a state of this process shows that the job has completed.
func (n *names) hasCompleted(jobID string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.completed[ofJob(jobID)]
}

func set[V any](m *map[projectAndName]V, name projectAndName, value V) {
	if *m == nil {
		*m = map[projectAndName]V{}
	}
	(*m)[name] = value
}
