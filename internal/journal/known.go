// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import "sync"

// known is what this process knows about entries and jobs, whatever the store shows.
type known struct {
	mu        sync.Mutex
	dealtWith set // ids of entries: no call of this process may find them
	inState   set // ids of jobs that the prior state has
	taken     set // ids of jobs that this run has created, taken over or imported: no stored state may have them yet
}

type set map[string]struct{}

func (s set) has(id string) bool {
	_, has := s[id]
	return has
}

func (s *set) add(id string) {
	if *s == nil {
		*s = set{}
	}
	if id != "" {
		(*s)[id] = struct{}{}
	}
}

// InState records that the prior state has a job.
func (k *known) InState(jobID string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.inState.add(jobID)
}

// Taken records that this run has created, taken over or imported a job.
func (k *known) Taken(jobID string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.taken.add(jobID)
}

// DealtWith records that no call may find these entries.
func (k *known) DealtWith(ids ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range ids {
		k.dealtWith.add(id)
	}
}

func (k *known) isDealtWith(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dealtWith.has(id)
}

// IsStored reports whether a job is in the prior state, and not only because of this run.
func (k *known) IsStored(jobID string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.inState.has(jobID) && !k.taken.has(jobID)
}

// HasOwner reports whether a resource has a job.
func (k *known) HasOwner(jobID string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.inState.has(jobID) || k.taken.has(jobID)
}

// take deals with an entry for a call. It returns false if another call has, or if a resource
// has the job that the request started, which is empty for a message.
func (k *known) take(id, job string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dealtWith.has(id) {
		return false
	}
	k.dealtWith.add(id)
	if k.inState.has(job) || k.taken.has(job) {
		return false
	}
	k.taken.add(job)
	return true
}
