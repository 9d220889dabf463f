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
	tests := []struct {
		name             string
		fault            func(ctx context.Context, c *Call, cancel, write func()) error
		byDefault, named error // nil: the request may be sent
	}{
		{"the write fails", func(context.Context, *Call, func(), func()) error { return errFault }, nil, errFault},
		{"the write fails and has arrived", func(_ context.Context, _ *Call, _, write func()) error { write(); return errFault }, nil, errFault},
		{"the write hangs", func(ctx context.Context, _ *Call, _, _ func()) error { <-ctx.Done(); return ctx.Err() }, nil, context.DeadlineExceeded},
		{"the machine sleeps meanwhile", func(_ context.Context, c *Call, _, _ func()) error { c.sentAt = c.sentAt.Add(-time.Hour); return nil }, nil, errSlow},
		{"the call is cancelled meanwhile", func(_ context.Context, _ *Call, cancel, write func()) error { write(); cancel(); return nil }, context.Canceled, context.Canceled},
	}
	for _, test := range tests {
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
	tests := []struct {
		name             string
		broken           time.Duration
		disturb          func(p *Process)
		byDefault, named []string
	}{
		{"for a while", 5 * time.Second, func(*Process) {}, nil, []string{"create job-1 first"}},
		{"until the process ends", time.Hour, func(*Process) {}, nil, nil}, // the state has the job
		{"until the process is stopped", time.Hour, (*Process).Stopping, []string{"create pending first"}, []string{"create pending first"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inFolders(t, func(t *testing.T, l Location) {
				j, reported := openReporting(t, l, "first")
				c := send(t, j, create, "")
				start := time.Now()
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

func TestWithdrawn_fault(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		j, reported := openReporting(t, l, "first")
		c := send(t, j, create, "")
		f := fail(j, "remove", fault)
		c.Withdrawn()
		if err := c.Unrecorded(); errors.Is(err, errFault) != l.Named {
			t.Errorf("unrecorded: %v", err)
		}
		wantReports(t, reported, in(l, 1, 0))
		j.store = f.store
		if err := c.Sending(); err != nil { // again, after a 429
			t.Fatal(err)
		}
		c.Answered("job-1")
		c.End()
		wantStored(t, l, "create job-1 first")
		if err := c.Unrecorded(); err != nil {
			t.Error(err)
		}
	})
}

// A load that fails is final: nobody after the first waits for it. But a caller
// that gives up is not the journal's failure.
func TestReady(t *testing.T) {
	tests := []struct {
		name   string
		cancel bool
		load   func(ctx context.Context) error
		took   time.Duration
		failed bool
	}{
		{"hangs", false, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 3 * opTimeout, true},
		{"fails", false, fault, 0, true},
		{"the first caller gives up", true, func(ctx context.Context) error { return ctx.Err() }, 0, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inFolders(t, func(t *testing.T, l Location) {
				j, reported := openReporting(t, l, "first")
				loads := 0
				fail(j, "load", func(ctx context.Context) error { loads++; return test.load(ctx) })
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.cancel {
					cancel()
				}
				start := time.Now()
				_ = j.Seen(ctx, "job-9", Ref{})
				for range 1000 {
					if err := j.Seen(t.Context(), "job-9", Ref{}); errors.As(err, new(*Error)) != (test.failed && l.Named) {
						t.Fatal(err)
					}
				}
				if took := time.Since(start); took != test.took || loads != 1 {
					t.Errorf("the callers waited %s for %d loads", took, loads)
				}
				wantReports(t, reported, in(l, map[bool]int{true: 1}[test.failed], 0))
			})
		})
	}
}

// What ends a process makes of its requests.
func TestStores_endings(t *testing.T) {
	type end struct {
		*testing.T
		p      *Process
		c      *Call  // that is about to POST
		cancel func() // ends its context
	}
	answered := func(e end) { e.c.Answered("job-1") }
	tests := []struct {
		name             string
		end              func(e end)
		byDefault, named string
	}{
		{"undisturbed", answered, "none", "job-1"},
		{"stopped before the response", func(e end) { e.p.Stopping(); answered(e) }, "job-1", "job-1"},
		{"the connection is gone before the response", func(e end) { e.cancel(); answered(e) }, "job-1", "job-1"},
		{"withdrawn", func(e end) { e.c.Withdrawn() }, "none", "none"},
		{"unknown, reported", func(e end) { e.c.Unknown() }, "none", "none"},
		{"unknown, stopped", func(e end) { e.p.Stopping(); e.c.Unknown() }, "unknown", "unknown"},
		{"unknown, the connection is gone", func(e end) { e.cancel(); e.c.Unknown() }, "unknown", "unknown"},
		{"the connection is gone after another call had no effect", func(e end) {
			post(e.T, e.c.journal, create, "", "job-1")
			e.c.Withdrawn()
			e.cancel()
		}, "none", "job-1"},
		{"another call has not returned", func(e end) { answered(e); send(e.T, e.c.journal, otherCreate, "") }, "job-1", "job-1"},
		{"killed", func(e end) { answered(e); crash(e.c.journal) }, "job-1", "job-1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stores(t, func(t *testing.T, l Location) {
				j := open(t, l, "first")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := j.Begin(ctx, create, "")
				if err := c.Sending(); err != nil {
					t.Fatal(err)
				}
				if test.end(end{t, j.process, c, cancel}); test.name != "killed" {
					c.End()
					j.process.Close(t.Context())
				}
				wantTakeOver(t, open(t, l, "second"), create, in(l, test.byDefault, test.named), "none")
			})
		})
	}
}
