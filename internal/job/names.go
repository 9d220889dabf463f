// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// projectAndName identifies a name.
type projectAndName [2]string

func (m *jobModel) projectAndName() projectAndName {
	return projectAndName{m.ProjectID.ValueString(), m.Name.ValueString()}
}

// names are what a process knows of the resources that have names. It plans or applies one
// configuration.
type names struct {
	// isApplying: a Create, Update or Delete has begun. From then on, plans report no error of names,
	// limits or the journal, because it would leave an old object deposed (T4).
	isApplying atomic.Bool

	mu      sync.Mutex
	owners  map[projectAndName]owner
	created map[projectAndName]bool // by this apply
	read    map[string]bool         // jobs, by id
}

// owner is the resource that has a name, as a plan shows it. Terraform may plan a resource more than
// once, so two owners can be the same resource: see mayBe.
type owner struct {
	// job is the resource's job in the state, which it keeps or replaces; empty for a new resource.
	job string
	// fingerprint tells apart two new resources by what they send. It is empty while the plan does not
	// know that.
	fingerprint string
	keepsJob    bool // the plan does not replace the job
}

// mayBe reports whether two owners may be one resource that is planned twice. What a new
// one sends may be unknown to one plan and known to the next, so no fingerprint equals any other.
func (o owner) mayBe(other owner) bool {
	return o.job == other.job && (o.fingerprint == other.fingerprint || o.fingerprint == "" || other.fingerprint == "")
}

// checkOwner makes sure that no other resource has the name. Once an apply has begun, it reports no
// error (T4), and beginCreate stops the second create instead.
func (d *ProviderData) checkOwner(plan *jobModel, o owner, diags *diag.Diagnostics) {
	if plan.Name.ValueString() == "" || plan.ProjectID.IsUnknown() {
		return // it is not known yet, or ignore_changes hides that of an imported job
	}
	if other, isOnly := d.names.own(plan.projectAndName(), o); !isOnly && !d.names.isApplying.Load() {
		check.ErrorAt(diags, path.Root("name"), wording.DuplicateName(plan.Name.ValueString(), plan.ProjectID.ValueString(), o.job, other.job))
	}
}

// own notes the owner of a name, unless there is another one, which it returns.
func (n *names) own(name projectAndName, o owner) (other owner, isOnly bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if other, isOwned := n.owners[name]; isOwned && !other.mayBe(o) {
		return other, false
	}
	set(&n.owners, name, o)
	return o, true
}

// beginCreate notes that a resource with the name is created, unless another one of this apply has
// the name. It returns the job that the other one keeps.
func (n *names) beginCreate(name projectAndName) (otherJob string, isOnly bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if o := n.owners[name]; o.keepsJob {
		return o.job, false
	}
	if n.created[name] {
		return "", false
	}
	set(&n.created, name, true)
	return "", true
}

// endCreate drops what beginCreate has noted: the create has failed, or a state has its job, so that
// its apply is over. In "terraform test", the next one has the same process.
func (n *names) endCreate(name projectAndName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.created, name)
}

// noteRead notes that the process has read a job in the state.
func (n *names) noteRead(jobID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.read == nil {
		n.read = map[string]bool{}
	}
	n.read[jobID] = true
}

// isRead reports whether the process has read a job in the state. That of an apply reads none, so it can
// tell that it is too late to replace a job which the plan keeps.
func (n *names) isRead(jobID string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.read[jobID]
}

func set[V any](m *map[projectAndName]V, name projectAndName, value V) {
	if *m == nil {
		*m = map[projectAndName]V{}
	}
	(*m)[name] = value
}
