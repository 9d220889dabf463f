// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A record that may not be there keeps the request from being sent, or in the default
// folder is a problem to be reported. X14: after an error nothing is left behind.
func TestSending_faults(t *testing.T) {
	for _, test := range []struct {
		name             string
		fault            func(ctx context.Context, c *Call, cancel, write func()) error
		byDefault, named error // nil: the request may be sent
	}{
		{"the write fails and has arrived", func(_ context.Context, _ *Call, _, write func()) error { write(); return errFault }, nil, errFault},
		{"the write hangs", func(ctx context.Context, _ *Call, _, _ func()) error { <-ctx.Done(); return ctx.Err() }, nil, context.DeadlineExceeded},
		{"the machine sleeps meanwhile", func(_ context.Context, c *Call, _, _ func()) error { c.started = c.started.Add(-time.Hour); return nil }, nil, errSlow},
		{"the call is cancelled meanwhile", func(_ context.Context, _ *Call, cancel, write func()) error { write(); cancel(); return nil }, context.Canceled, context.Canceled},
	} {
		t.Run(test.name, func(t *testing.T) {
			inFolders(t, func(t *testing.T, l Location) {
				j := open(t, l, "first")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := j.Begin(ctx, Request{Key: create})
				inner := j.store
				removals := 0
				fail(j, "remove", func(context.Context) error { removals++; return nil })
				fail(j, "write", func(ctx context.Context) error {
					return test.fault(ctx, c, cancel, func() {
						if err := inner.write(context.WithoutCancel(ctx), c.entry); err != nil {
							t.Error(err)
						}
					})
				})
				want := in(l, test.byDefault, test.named)
				err := c.Sending()
				if !errors.Is(err, want) || (want != nil && !errors.Is(want, context.Canceled)) != errors.As(err, new(*Error)) {
					t.Errorf("got %v, want %v", err, want)
				}
				if want == nil {
					if c.Problem() == nil || c.Orphan() != nil {
						t.Errorf("problem %v, orphan %v", c.Problem(), c.Orphan())
					}
					return
				}
				if removals != 1 {
					t.Errorf("removed %d times, want once", removals)
				}
				wantStored(t, l)
				c.End()
				if p := j.process; p.hasLost.Load() || p.posted() > 0 {
					t.Error("taken for a request that was sent")
				}
			})
		})
	}
}

// Ctrl-C does not wait for a store that hangs.
func TestSending_cancelled(t *testing.T) {
	inFolders(t, func(t *testing.T, l Location) {
		j := open(t, l, "first")
		ctx, cancel := context.WithCancel(t.Context())
		fail(j, "write", func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() })
		began := time.Now()
		if err := j.Begin(ctx, Request{Key: create}).Sending(); !errors.Is(err, context.Canceled) || time.Since(began) > 0 {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
	})
}

// What cannot be recorded is a problem to be reported, and tried once more when the call ends.
func TestCall_triedAgain(t *testing.T) {
	for _, test := range []struct {
		name, op  string
		do        func(c *Call)
		then, not []string // in the store when the second try works, and when it does not
	}{
		{"a response", "write", func(c *Call) { c.Accepted("job-1") }, []string{"create job-1 first"}, []string{"create pending first"}},
		{"a refusal", "remove", (*Call).Withdrawn, nil, []string{"create pending first"}},
	} {
		for broken, want := range map[int][]string{1: test.then, 2: test.not} {
			t.Run(test.name, func(t *testing.T) {
				folders(t, func(t *testing.T, l Location) {
					j := open(t, l, "first")
					c := send(t, j, create, "")
					tries := 0
					fail(j, test.op, func(context.Context) error {
						if tries++; tries > broken {
							return nil
						}
						return errFault
					})
					test.do(c)
					if err := c.Problem(); !errors.Is(err, errFault) {
						t.Errorf("problem: %v", err)
					}
					c.End()
					wantStored(t, l, want...)
				})
			})
		}
	}
}

// A store that hangs does so once, and a caller that is cancelled does not fail the others.
func TestReady(t *testing.T) {
	inFolders(t, func(t *testing.T, l Location) {
		j := open(t, l, "first")
		loads, start := 0, time.Now()
		fail(j, "load", func(ctx context.Context) error { loads++; <-ctx.Done(); return ctx.Err() })
		for range 1000 {
			if err := j.Seen(t.Context(), "job-9", Ref{}); !errors.As(err, new(*Error)) {
				t.Fatal(err)
			}
			if o, err := j.Find(t.Context(), create); o != nil || errors.As(err, new(*Error)) != l.Named {
				t.Fatal(o, err)
			}
		}
		if took := time.Since(start); took != 3*opTimeout || loads != 1 {
			t.Errorf("the callers waited %s for %d loads", took, loads)
		}

		j = open(t, l, "first")
		fail(j, "load", func(ctx context.Context) error { return ctx.Err() })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := errors.Join(j.Seen(ctx, "job-9", Ref{}), j.Seen(t.Context(), "job-9", Ref{})); err != nil {
			t.Error(err)
		}
	})
}
