// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"sync"
	"sync/atomic"
)

// projectAndName identifies a name.
type projectAndName struct {
	Project string `json:"project"`
	Name    string `json:"name"`
}

// run is what a process has seen of the run that it plans or applies. An alias has its own (T9).
type run struct {
	isApplying atomic.Bool // a Create, Update or Delete has begun: see phase

	owners  sync.Map // of names: an owner for each projectAndName
	created sync.Map // each projectAndName that this apply has created
	read    sync.Map // the ids of the jobs in the state that were read
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

// mayBe reports whether two owners may be one resource that is planned twice. What a new one sends may
// be unknown to one plan and known to the next, so an empty fingerprint matches any other.
func (o owner) mayBe(other owner) bool {
	return o.job == other.job && (o.fingerprint == other.fingerprint || o.fingerprint == "" || other.fingerprint == "")
}

// register notes the owner of a name, unless there is another one, which it returns.
func (r *run) register(name projectAndName, o owner) (other owner, isOnly bool) {
	if noted, isOwned := r.owners.LoadOrStore(name, o); isOwned {
		if other, _ = noted.(owner); !other.mayBe(o) {
			return other, false
		}
		r.owners.Store(name, o)
	}
	return o, true
}

// beginCreate notes that a resource with the name is created, unless another one of this apply has
// the name. It returns the job that the other one keeps.
func (r *run) beginCreate(name projectAndName) (otherJob string, isOnly bool) {
	noted, _ := r.owners.Load(name)
	if o, _ := noted.(owner); o.keepsJob {
		return o.job, false
	}
	_, isCreated := r.created.LoadOrStore(name, true)
	return "", !isCreated
}

// endCreate drops what beginCreate has noted: the create has failed, or a state has its job, so its apply
// is over. The next apply of "terraform test" has the same process.
func (r *run) endCreate(name projectAndName) { r.created.Delete(name) }

// noteRead notes that the process has read a job in the state.
func (r *run) noteRead(jobID string) { r.read.Store(jobID, true) }

// isRead reports whether the process has read a job in the state. An apply of a saved plan has not, so
// it knows that its plan keeps the job, and that Terraform refuses to replace it now.
func (r *run) isRead(jobID string) bool {
	_, isRead := r.read.Load(jobID)
	return isRead
}
