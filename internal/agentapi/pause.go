// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// gateWidth is how many calls may be under way at once: POSTs always, GETs after
// the service has limited us. As many are answered 429 when a limit is met.
const gateWidth = 4

// gate is the shared pause after a 429: all calls stop until the pause is over,
// one goes as a probe, and when the service takes it the rest follow, few at a
// time, in the order they came.
type gate struct {
	base time.Duration // first pause when the service names none

	mu       sync.Mutex
	width    int       // calls allowed at once; 0 = any number
	busy     int       // calls under way
	reopens  time.Time // no call passes before
	epoch    int       // counts the pauses, so that late answers 429 do not add up
	failures int       // exponent of the next pause when the service names none
	queue    []*waiter // in the order they came
}

type waiter struct {
	ready    chan error // buffered: nil = go
	turn     pass       // valid once ready said go
	deadline time.Time  // zero = none
}

// pass is the right to make one call.
type pass struct{ epoch int }

func newGate(base time.Duration, width int) *gate { return &gate{base: base, width: width} }

// enter waits for the turn of one call. It fails at once with ErrPauseTooLong
// when the pause outlasts the deadline of ctx.
func (g *gate) enter(ctx context.Context) (pass, error) {
	if ctx.Err() != nil {
		return pass{}, context.Cause(ctx)
	}
	g.mu.Lock()
	if len(g.queue) == 0 && g.open() {
		g.busy++
		defer g.mu.Unlock()
		return pass{g.epoch}, nil
	}
	w := &waiter{ready: make(chan error, 1)}
	w.deadline, _ = ctx.Deadline()
	if g.outlasts(w) {
		defer g.mu.Unlock()
		return pass{}, g.tooLong()
	}
	g.queue = append(g.queue, w)
	g.mu.Unlock()

	select {
	case err := <-w.ready:
		return w.turn, err
	case <-ctx.Done():
		g.mu.Lock()
		defer g.mu.Unlock()
		g.queue = slices.DeleteFunc(g.queue, func(other *waiter) bool { return other == w })
		select {
		case err := <-w.ready: // the turn came at the same moment: give it on
			if err == nil {
				g.busy--
				g.admit()
			}
		default:
		}
		return pass{}, context.Cause(ctx)
	}
}

// leave ends a call. accepted says that the service took or refused it for a
// reason other than its limit, so the rest may follow the probe.
func (g *gate) leave(p pass, accepted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	if accepted && g.width != 0 && p.epoch == g.epoch {
		if g.width < gateWidth { // the probe: start the next pause near the length that this one had
			g.failures = max(g.failures-1, 0)
		}
		g.width = gateWidth
	}
	g.admit()
}

// limited ends a call that was answered 429 and starts or extends the pause.
func (g *gate) limited(p pass, after time.Duration, told bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	if p.epoch == g.epoch { // the first 429 since the last pause
		g.epoch++
		if !told || g.width == 1 && after == 0 {
			after = max(after, g.ownPause())
			g.failures++
		}
	} else if !told {
		after = 0
	}
	g.width = 1
	if end := time.Now().Add(after); end.After(g.reopens) {
		g.reopens = end
		time.AfterFunc(after, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.admit()
		})
	}
	g.queue = slices.DeleteFunc(g.queue, func(w *waiter) bool {
		tooLong := g.outlasts(w)
		if tooLong {
			w.ready <- g.tooLong()
		}
		return tooLong
	})
	g.admit()
}

// ownPause grows threefold from one failed probe to the next, with jitter: an
// hourly limit is found with few probes.
func (g *gate) ownPause() time.Duration {
	pause := g.base
	for range min(g.failures, 6) {
		pause *= 3
	}
	return pause/2 + rand.N(pause/2+1)
}

func (g *gate) open() bool {
	return (g.width == 0 || g.busy < g.width) && !time.Now().Before(g.reopens)
}

func (g *gate) outlasts(w *waiter) bool {
	return !w.deadline.IsZero() && g.reopens.After(w.deadline)
}

// tooLong says when applying again is worth while, or how long timeouts must be.
func (g *gate) tooLong() error {
	return fmt.Errorf("%w: the next request may go out in %s", ErrPauseTooLong, time.Until(g.reopens).Round(time.Second))
}

// admit lets in as many waiting calls as the gate allows.
func (g *gate) admit() {
	for len(g.queue) > 0 && g.open() {
		w := g.queue[0]
		g.queue = slices.Delete(g.queue, 0, 1)
		g.busy++
		w.turn = pass{g.epoch}
		w.ready <- nil
	}
}

// gates holds one gate for each project's POSTs.
type gates struct {
	mu        sync.Mutex
	byProject map[string]*gate
}

func (g *gates) project(id string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byProject == nil {
		g.byProject = make(map[string]*gate, 1)
	}
	if g.byProject[id] == nil {
		g.byProject[id] = newGate(postPause, gateWidth)
	}
	return g.byProject[id]
}
