// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"math/rand/v2"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// chooser picks faults by weight.
type chooser struct {
	posts []postRow
	gets  []getRow
}

func (c chooser) post(u *user, messaging bool) *postFault {
	fits := func(row postRow) bool {
		return (!row.tls || u.tls) && (!row.message || messaging) && (!row.create || !messaging)
	}
	row := pickWeighted(u.random, c.posts, func(row postRow) int {
		if !fits(row) {
			return 0
		}
		return row.weight
	})
	f := row.make(u)
	f.row = row.row
	return f
}

func (c chooser) get(u *user) *getFault {
	row := pickWeighted(u.random, c.gets, func(row getRow) int {
		if row.wait && !u.applying {
			return 0
		}
		return row.weight
	})
	f := row.make(u, u.random)
	f.row = row.row
	return f
}

func pickWeighted[T any](r *rand.Rand, from []T, weight func(T) int) T {
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
func (u *user) arm(troubled bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.faultsOver.Load() || !troubled {
		return
	}
	for range 1 + u.random.IntN(3) {
		f := u.chooser.get(u)
		f.skip = u.random.IntN(4)
		if !u.applying {
			f.skip = 0
		}
		u.gets = append(u.gets, f)
	}
}

// armPosts chooses what happens to the POSTs of the apply that follows.
func (u *user) armPosts(messaging bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.kind, u.prompt = faultserver.Create, u.wants[u.at]
	if messaging {
		u.kind = faultserver.Message
		u.texts[u.prompt] += 0 // asked for
	}
	for !u.faultsOver.Load() && u.random.IntN(3) > 0 {
		f := u.chooser.post(u, messaging)
		if u.posts = append(u.posts, f); f.final {
			return
		}
	}
}

// turn is how the service continues a job after a prompt, its first or a later
// one, and which fault that is.
type turn struct {
	simulator.Script
	fault string
	skew  time.Duration // of the service's clock
}

// drawTurn draws one. Those of a user are drawn before the first run.
func drawTurn(r *rand.Rand, first bool) turn {
	t := turn{Script: simulator.Script{Duration: pick(r, 2*time.Second, 20*time.Second, 90*time.Second, 5*time.Minute)}}
	switch r.IntN(14) {
	case 0:
		t.Status = "failed"
	case 1:
		t.Status = "archived"
	}
	switch {
	case first && r.IntN(5) == 0:
		t.skew, t.fault = pick(r, -time.Hour, time.Hour), rowID('P', 12)
	case !first && r.IntN(3) == 0:
		t.Duration = max(t.Duration, 20*time.Second)
		t.Stale, t.fault = time.Duration(1+r.IntN(9))*time.Second, rowID('M', 1)
	case !first && r.IntN(3) == 0:
		t.Duration, t.fault = 0, rowID('M', 2)
	}
	return t
}
