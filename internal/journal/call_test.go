// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// inFolders runs a test in both folders, with a clock that tests can pass.
func inFolders(t *testing.T, try func(t *testing.T, l Location)) {
	t.Helper()
	folders(t, func(t *testing.T, l Location) {
		synctest.Test(t, func(t *testing.T) { try(t, l) })
	})
}

// A request whose record fails is not sent where the user named the journal,
// and nothing of it stays. In the default folder that is logged.
func TestSending_faults(t *testing.T) {
	tests := []struct {
		name             string
		write            func(ctx context.Context, c *Call, cancel, write func()) error
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
				r := new(reports)
				p, j := openReporting(t, l, "first", r.add)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := j.Begin(ctx, create, "")
				inner := j.store
				f := fail(j, nil)
				f.before = func(ctx context.Context, op string) error {
					if op != "write" {
						return nil
					}
					return test.write(ctx, c, cancel, func() {
						if err := inner.write(context.WithoutCancel(ctx), c.entry); err != nil {
							t.Error(err)
						}
					})
				}
				want := test.byDefault
				if l.Named {
					want = test.named
				}
				err := c.Sending()
				if !errors.Is(err, want) || (want != nil && !errors.Is(want, context.Canceled)) != errors.As(err, new(*Error)) {
					t.Errorf("got %v, want %v", err, want)
				}
				if want == nil && r.count() != 1 {
					t.Errorf("reported: %v", r.errs)
				}
				if want != nil {
					if got := stored(t, l, keyNames); got != nil {
						t.Errorf("kept: %q", got)
					}
					c.End()
					if p.hasLost.Load() || p.posted() > 0 {
						t.Error("taken for a request that was sent")
					}
				}
				crash(j)
			})
		})
	}
}

// X14: the id cannot be recorded after the response.
func TestAnswered_faults(t *testing.T) {
	tests := []struct {
		name    string
		broken  time.Duration
		disturb func(p *Process)
		want    []string
	}{
		{"for a while", 5 * time.Second, nil, []string{"create job-1 first"}},
		{"until the process ends", time.Hour, nil, nil}, // the state has the job
		{"until the process is stopped", time.Hour, (*Process).Stopping, []string{"create pending first"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inFolders(t, func(t *testing.T, l Location) {
				r := new(reports)
				p, j := openReporting(t, l, "first", r.add)
				c := send(t, j, create, "")
				start := time.Now()
				fail(j, func(_ context.Context, op string) error {
					if op == "write" && time.Since(start) < test.broken {
						return errFault
					}
					return nil
				})
				c.Answered("job-1")
				if err := c.Unrecorded(); errors.Is(err, errFault) != l.Named || r.count() == map[bool]int{false: 0, true: 1}[l.Named] {
					t.Errorf("unrecorded: %v, reported: %v", err, r.errs)
				}
				c.End()
				time.Sleep(10 * time.Second)
				if test.disturb != nil {
					test.disturb(p)
				}
				p.Close(t.Context())
				want := test.want
				if !l.Named && test.disturb == nil {
					want = nil // an undisturbed end
				}
				if diff := cmp.Diff(want, stored(t, l, keyNames)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// A full disk that has room again: the response still has a time.
func TestAnswered_afterUnrecordedSending(t *testing.T) {
	_, j := openReporting(t, Location{Folder: t.TempDir()}, "first", func(error) {})
	f := fail(j, func(context.Context, string) error { return errFault })
	c := send(t, j, create, "")
	f.before = func(context.Context, string) error { return nil }
	c.Answered("job-1")
	c.End()
	if age := time.Since(time.UnixMilli(c.Ref().At)); age > time.Minute || age < -time.Minute {
		t.Errorf("sent %s ago", age)
	}
}

func TestWithdrawn_fault(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		_, j := openReporting(t, l, "first", func(error) {})
		c := send(t, j, create, "")
		f := fail(j, failing("remove"))
		c.Withdrawn()
		if err := c.Unrecorded(); errors.Is(err, errFault) != l.Named {
			t.Errorf("unrecorded: %v", err)
		}
		f.before = func(context.Context, string) error { return nil }
		if err := c.Sending(); err != nil { // again, after a 429
			t.Fatal(err)
		}
		c.Answered("job-1")
		c.End()
		if diff := cmp.Diff([]string{"create job-1 first"}, stored(t, l, keyNames)); diff != "" || c.Unrecorded() != nil {
			t.Error(diff, c.Unrecorded())
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
		{"fails", false, func(context.Context) error { return errFault }, 0, true},
		{"the first caller gives up", true, func(ctx context.Context) error { return ctx.Err() }, 0, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inFolders(t, func(t *testing.T, l Location) {
				_, j := open(t, l, "first")
				post(t, j, create, "", "job-1")
				crash(j)
				r := new(reports)
				_, next := openReporting(t, l, "second", r.add)
				loads := 0
				fail(next, func(ctx context.Context, op string) error {
					if op != "load" {
						return nil
					}
					loads++
					return test.load(ctx)
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.cancel {
					cancel()
				}
				start := time.Now()
				_ = next.Seen(ctx, "job-9", Ref{})
				if took := time.Since(start); took != test.took {
					t.Errorf("the first caller waited %s", took)
				}
				start = time.Now()
				for range 1000 {
					err := next.Seen(t.Context(), "job-9", Ref{})
					if errors.As(err, new(*Error)) != (test.failed && l.Named) {
						t.Fatal(err)
					}
				}
				if took := time.Since(start); took != 0 || loads != 1 {
					t.Errorf("the other callers waited %s for %d loads", took, loads)
				}
				if !l.Named && r.count() != map[bool]int{true: 1}[test.failed] {
					t.Errorf("reported: %v", r.errs)
				}
				crash(next)
			})
		})
	}
}
