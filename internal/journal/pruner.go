// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// pruner removes entries in the background: a thousand resources must not wait for it.
type pruner struct {
	mu       sync.Mutex
	removals map[store.Name]*removal
	creates  map[Key]bool // of this plan: their apply looks for equal entries
	slots    *semaphore.Weighted
	failure  error // after which no more is removed
}

// removal is an entry that is being removed.
type removal struct {
	done       chan struct{}
	err        error // once it is done
	isReturned bool  // by Unremoved
}

// Remove removes an entry in the background that a stored state makes superfluous, or that a person has given up.
func (j *Journal) Remove(ctx context.Context, name store.Name) {
	p := &j.pruner
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.removals == nil {
		p.removals, p.slots = map[store.Name]*removal{}, semaphore.NewWeighted(16)
	}
	if p.removals[name] != nil {
		return
	}
	r := &removal{done: make(chan struct{})}
	p.removals[name] = r
	release := j.process.Hold() // a shutdown gives it some time
	go func() {
		defer release()
		defer close(r.done)
		r.err = j.removeInSlot(context.WithoutCancel(ctx), name)
	}()
}

func (j *Journal) removeInSlot(ctx context.Context, name store.Name) error {
	p := &j.pruner
	_ = p.slots.Acquire(ctx, 1) // it never ends
	defer p.slots.Release(1)
	p.mu.Lock()
	err := p.failure
	p.mu.Unlock()
	if err != nil {
		return err
	}
	j.log(ctx, "removing: a state shows it, or it was given up", name, "")
	if err = j.remove(ctx, name); err != nil {
		j.log(ctx, "not removed: "+err.Error(), name, "")
		p.mu.Lock()
		defer p.mu.Unlock()
		p.failure = err
	}
	return err
}

// NotRemoved returns why an entry could not be removed. A plan need not be able to, an apply must.
func (j *Journal) NotRemoved() error {
	j.pruner.mu.Lock()
	defer j.pruner.mu.Unlock()
	return j.pruner.failure
}

func (r *removal) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// PlansCreate says that an apply of this plan makes a create, which would find equal entries.
func (j *Journal) PlansCreate(key Key) {
	j.pruner.mu.Lock()
	defer j.pruner.mu.Unlock()
	if j.pruner.creates == nil {
		j.pruner.creates = map[Key]bool{}
	}
	j.pruner.creates[key] = true
}

// Unremoved waits until the entries are removed that a create of this plan would find, and returns those that could
// not be, each once, or why they cannot be read. Either the create or the removal may come first, so both are followed by this.
func (j *Journal) Unremoved(ctx context.Context) ([]*Earlier, error) {
	p := &j.pruner
	p.mu.Lock()
	equal := map[store.Name]*removal{}
	if len(p.creates) > 0 { // else a thousand calls would look through a thousand removals
		for name, r := range p.removals {
			if p.creates[name.Key] && !r.isReturned {
				equal[name] = r
			}
		}
	}
	p.mu.Unlock()
	var names []store.Name
	for name, r := range equal {
		if r.wait(ctx) == nil {
			continue
		}
		p.mu.Lock()
		if !r.isReturned {
			names = append(names, name)
		}
		r.isReturned = true
		p.mu.Unlock()
	}
	return j.read(ctx, names)
}
