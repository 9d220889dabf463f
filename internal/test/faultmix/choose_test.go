// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"math/rand/v2"
	"sync"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// chooser picks faults by weight.
type chooser struct {
	posts []postRow
	gets  []getRow
}

func (c chooser) post(o *order, messaging bool) *postFault {
	fits := func(row postRow) bool {
		return (!row.tls || o.tls) && (!row.message || messaging) && (!row.create || !messaging)
	}
	row := weighed(o.random, c.posts, func(row postRow) int {
		if !fits(row) {
			return 0
		}
		return row.weight
	})
	f := row.make(o)
	f.row = row.row
	return f
}

func (c chooser) get(o *order) *getFault {
	row := weighed(o.random, c.gets, func(row getRow) int {
		if row.wait && !o.applying {
			return 0
		}
		return row.weight
	})
	f := row.make(o)
	f.row = row.row
	return f
}

func weighed[T any](r *rand.Rand, from []T, weight func(T) int) T {
	sum := 0
	for _, one := range from {
		sum += weight(one)
	}
	n := r.IntN(sum)
	for _, one := range from {
		if n -= weight(one); n < 0 {
			return one
		}
	}
	panic("unreachable")
}

// arm chooses what happens to the GETs of the call that has begun.
func (o *order) arm(troubled bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calm.Load() || !troubled {
		return
	}
	for range 1 + o.random.IntN(3) {
		f := o.chooser.get(o)
		f.skip = o.random.IntN(4)
		if !o.applying {
			f.skip = 0
		}
		o.gets = append(o.gets, f)
	}
}

// armPosts chooses what happens to the POSTs of the apply that follows.
func (o *order) armPosts(messaging bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kind, o.prompt = faultserver.Create, o.wants[o.at]
	if messaging {
		o.kind = faultserver.Message
		o.texts[o.prompt] += 0 // asked for
	}
	for !o.calm.Load() && o.random.IntN(3) > 0 {
		f := o.chooser.post(o, messaging)
		if o.posts = append(o.posts, f); f.final {
			return
		}
	}
}

// sharedSource is a source for several goroutines: a server's may still be at
// work when its client has given up.
type sharedSource struct {
	mu     sync.Mutex
	source rand.Source
}

func (s *sharedSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source.Uint64()
}
