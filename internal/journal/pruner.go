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
	creates  map[Key]bool // that an apply of this plan makes
	slots    *semaphore.Weighted
	failure  error // after which no more is removed
}

// removal is an entry that is being removed.
type removal struct {
	done chan struct{}
	err  error // once it is done
}

// Remove removes an entry that a stored state makes superfluous, or that a person has given up. It
// waits only if the entry is equal to a create of this plan, because its apply looks for it.
func (j *Journal) Remove(ctx context.Context, name store.Name) {
	if r, mustWait := j.removing(ctx, name); mustWait {
		_ = r.wait(ctx) // PlansCreate reports it
	}
}

func (j *Journal) removing(ctx context.Context, name store.Name) (_ *removal, mustWait bool) {
	p := &j.pruner
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.removals[name]
	if r == nil {
		if p.removals == nil {
			p.removals, p.slots = map[store.Name]*removal{}, semaphore.NewWeighted(16)
		}
		r = &removal{done: make(chan struct{})}
		p.removals[name] = r
		release := j.process.Hold() // a shutdown gives it some time
		go func() {
			defer release()
			defer close(r.done)
			r.err = j.removeInSlot(context.WithoutCancel(ctx), name)
		}()
	}
	return r, p.creates[name.Key]
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

// PlansCreate says that an apply of this plan makes a create, which would find equal entries. It waits until those
// that are superfluous are removed, and returns those that could not be.
func (j *Journal) PlansCreate(ctx context.Context, key Key) []*Earlier {
	p := &j.pruner
	p.mu.Lock()
	if p.creates == nil {
		p.creates = map[Key]bool{}
	}
	p.creates[key] = true
	equal := map[store.Name]*removal{}
	for name, r := range p.removals {
		if name.Key == key {
			equal[name] = r
		}
	}
	p.mu.Unlock()
	var remaining []store.Name
	for name, r := range equal {
		if r.wait(ctx) != nil {
			remaining = append(remaining, name)
		}
	}
	found, _ := j.read(ctx, remaining) // without a reading, the apply reports what is wrong
	return found
}
