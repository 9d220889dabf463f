// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A request whose record fails is not sent where the user named the journal,
// and nothing of it stays. In the default folder that is logged.
func TestSending_faults(t *testing.T) {
	for _, test := range []struct {
		name             string
		fault            func(ctx context.Context, c *Call, cancel, write func()) error
		byDefault, named error // nil: the request may be sent
	}{
		{"the write fails and has arrived", func(_ context.Context, _ *Call, _, write func()) error { write(); return errFault }, nil, errFault},
		{"the write hangs", func(ctx context.Context, _ *Call, _, _ func()) error { <-ctx.Done(); return ctx.Err() }, nil, context.DeadlineExceeded},
		{"the machine sleeps meanwhile", func(_ context.Context, c *Call, _, _ func()) error { c.sentAt = c.sentAt.Add(-time.Hour); return nil }, nil, errSlow},
		{"the call is cancelled meanwhile", func(_ context.Context, _ *Call, cancel, write func()) error { write(); cancel(); return nil }, context.Canceled, context.Canceled},
	} {
		t.Run(test.name, func(t *testing.T) {
			inFolders(t, func(t *testing.T, l Location) {
				j, reported := openReporting(t, l, "first")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := j.Begin(ctx, create, "")
				inner := j.store
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
					wantReports(t, reported, 1)
					return
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

// X14: the id cannot be recorded after the response.
func TestAnswered_faults(t *testing.T) {
	for _, test := range []struct {
		name             string
		broken           time.Duration
		disturb          func(p *Process)
		byDefault, named []string
	}{
		{"for a while", 5 * time.Second, func(*Process) {}, nil, []string{"create job-1 first"}},
		{"until the process ends", time.Hour, func(*Process) {}, nil, nil}, // the state has the job
		{"until the process is stopped", time.Hour, (*Process).Stopping, []string{"create pending first"}, []string{"create pending first"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inFolders(t, func(t *testing.T, l Location) {
				j, reported := openReporting(t, l, "first")
				c := send(t, j, create, "")
				start := time.Now()
				fail(j, "remove", func(context.Context) error { time.Sleep(time.Second); return nil }) // Close awaits it
				fail(j, "write", func(context.Context) error {
					if time.Since(start) < test.broken {
						return errFault
					}
					return nil
				})
				c.Answered("job-1")
				if err := c.Unrecorded(); errors.Is(err, errFault) != l.Named {
					t.Errorf("unrecorded: %v", err)
				}
				wantReports(t, reported, in(l, 1, 0))
				c.End()
				time.Sleep(10 * time.Second)
				test.disturb(j.process)
				j.process.Close(t.Context())
				wantStored(t, l, in(l, test.byDefault, test.named)...)
			})
		})
	}
}

// A removal that fails, and then the request is sent again after a 429.
func TestWithdrawn_fault(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		j, reported := openReporting(t, l, "first")
		c := send(t, j, create, "")
		fail(j, "remove", fault)
		c.Withdrawn()
		if err := c.Unrecorded(); errors.Is(err, errFault) != l.Named {
			t.Errorf("unrecorded: %v", err)
		}
		wantReports(t, reported, in(l, 1, 0))
		if err := c.Sending(); err != nil {
			t.Error(err)
		}
		c.Answered("job-1")
		if err := c.Unrecorded(); err != nil {
			t.Error(err)
		}
		wantStored(t, l, "create job-1 first")
	})
}

// A load that fails is final: nobody after the first waits for it. But a caller
// that gives up is not the journal's failure.
func TestReady(t *testing.T) {
	inFolders(t, func(t *testing.T, l Location) {
		j, reported := openReporting(t, l, "first")
		loads, start := 0, time.Now()
		fail(j, "load", func(ctx context.Context) error { loads++; <-ctx.Done(); return ctx.Err() })
		for range 1000 {
			if err := j.Seen(t.Context(), "job-9", Ref{}); errors.As(err, new(*Error)) != l.Named {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 3*opTimeout || loads != 1 {
			t.Errorf("the callers waited %s for %d loads", took, loads)
		}
		wantReports(t, reported, in(l, 1, 0))

		j = open(t, l, "first")
		fail(j, "load", func(ctx context.Context) error { return ctx.Err() })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := errors.Join(j.Seen(ctx, "job-9", Ref{}), j.Seen(t.Context(), "job-9", Ref{})); err != nil {
			t.Error(err)
		}
	})
}

// What ends a process makes of its requests.
func TestStores_endings(t *testing.T) {
	for _, test := range []struct {
		name             string
		end              func(c *Call, cancel func()) // of a call that is about to POST
		byDefault, named string
	}{
		{"undisturbed", func(c *Call, _ func()) { c.Answered("job-1") }, "none", "job-1"},
		{"stopped before the response", func(c *Call, _ func()) { c.journal.process.Stopping(); c.Answered("job-1") }, "job-1", "job-1"},
		{"the connection is gone before the response", func(c *Call, cancel func()) { cancel(); c.Answered("job-1") }, "job-1", "job-1"},
		{"withdrawn", func(c *Call, _ func()) { c.Withdrawn() }, "none", "none"},
		{"unknown, reported", func(c *Call, _ func()) { c.Unknown() }, "none", "none"},
		{"unknown, stopped", func(c *Call, _ func()) { c.journal.process.Stopping(); c.Unknown() }, "unknown", "unknown"},
		{"unknown, the connection is gone", func(c *Call, cancel func()) { cancel(); c.Unknown() }, "unknown", "unknown"},
		{"the connection is gone after another call had no effect", func(c *Call, cancel func()) {
			post(t, c.journal, create, "", "job-1")
			c.Withdrawn()
			cancel()
		}, "none", "job-1"},
		{"another call has not returned", func(c *Call, _ func()) { c.Answered("job-1"); send(t, c.journal, otherCreate, "") }, "job-1", "job-1"},
		{"killed", func(c *Call, _ func()) { c.Answered("job-1"); crash(c.journal) }, "job-1", "job-1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			stores(t, func(t *testing.T, l Location) {
				j := open(t, l, "first")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := sendIn(ctx, t, j, create, "")
				if test.end(c, cancel); test.name != "killed" {
					c.End()
					j.process.Close(t.Context())
				}
				wantTakeOver(t, open(t, l, "second"), create, in(l, test.byDefault, test.named), "none")
			})
		})
	}
}
