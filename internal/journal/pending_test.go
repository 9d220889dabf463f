// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// What ends the wait for a request of a process that lives, or is believed to.
func TestStores_pendingOutcomes(t *testing.T) {
	tests := []struct {
		name string
		wait time.Duration
		dead func(c *Call) bool
		then func(c *Call)
		want string
	}{
		{name: "the deadline passes", wait: 100 * time.Millisecond, want: "unknown"},
		{name: "it is withdrawn", wait: time.Hour, then: (*Call).Withdrawn, want: "none"},
		{name: "it is left to the next run", wait: time.Hour, then: func(c *Call) { c.journal.process.Stopping(); c.Unknown(); c.End() }, want: "unknown"},
		{name: "it is answered just before its sender dies", wait: time.Hour, dead: func(c *Call) bool { c.Answered("job-1"); return true }, want: "job-1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stores(t, func(t *testing.T, l Location) {
				j := open(t, l, "first")
				j.waitFor = test.wait
				c := send(t, j, create, "")
				sent := time.UnixMilli(c.Ref().At)
				next := open(t, l, "second")
				if test.dead != nil {
					fail(next, "", nil).isDead = func() bool { return test.dead(c) }
				}
				announce(t, next, create)
				if test.then != nil {
					test.then(c)
				}
				o, err := next.TakeOver(t.Context(), create)
				if err != nil || jobOf(o) != test.want {
					t.Fatalf("took over %s, %v; want %s", jobOf(o), err, test.want)
				}
				if o != nil && o.SentAt.Sub(sent).Abs() > time.Second {
					t.Errorf("sent at %s, want %s", o.SentAt, sent)
				}
				if test.want == "unknown" { // reported once
					wantStored(t, l)
				}
			})
		})
	}
}

// The response arrives between the last look at a pending entry and its claim.
// Red when a lost claim, or the answer in a claimed file, is not looked at again.
func TestStores_answeredBeforeClaim(t *testing.T) {
	stores(t, func(t *testing.T, l Location) {
		c := send(t, open(t, l, "first"), create, "")
		next := open(t, l, "second")
		f := fail(next, "claim", nil)
		f.before = func(context.Context) error { f.op = ""; c.Answered("job-1"); return nil }
		f.isDead = func() bool { return true }
		wantTakeOver(t, next, create, "job-1")
	})
}

// A response that arrives after all is recorded again. Red with the id of the
// entry that was reported: its removal may still be under way.
func TestStores_lateResponse(t *testing.T) {
	stores(t, func(t *testing.T, l Location) {
		j := open(t, l, "first")
		j.waitFor = 100 * time.Millisecond
		c := send(t, j, create, "")
		next := open(t, l, "second")
		fail(next, "remove", func(context.Context) error { // the report's
			c.Answered("job-1")
			c.End()
			return nil
		})
		wantTakeOver(t, next, create, "unknown")
		wantTakeOver(t, open(t, l, "third"), create, "job-1", "none")
	})
}

// A late response whose request nobody has claimed stays where a caller waits
// for it. Red when each late response gets a new entry and the old one goes.
func TestStores_lateResponseIsAwaited(t *testing.T) {
	stores(t, func(t *testing.T, l Location) {
		c := send(t, open(t, l, "first"), create, "")
		next := open(t, l, "second")
		announce(t, next, create)
		c.sentAt = c.sentAt.Add(-time.Hour) // its machine was asleep
		go c.Answered("job-1")
		wantTakeOver(t, next, create, "job-1")
	})
}

// The process that sent is killed: the next run does not wait for the deadline,
// an hour later.
func TestStores_senderKilled(t *testing.T) {
	stores(t, func(t *testing.T, l Location) {
		child := startChild(t, "pending", l)
		child.line()
		next := open(t, l, "second")
		impatient, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if o, err := next.TakeOver(impatient, childKey); o != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while it lives: %s, %v", jobOf(o), err)
		}
		child.kill()
		wantTakeOver(t, next, childKey, "unknown")
	})
}

// X15: the time of an entry in a folder is wrong.
func TestFolder_clocks(t *testing.T) {
	for name, test := range map[string]struct{ off, want time.Duration }{
		"right": {0, time.Minute}, "an hour ago": {-time.Hour, 0}, "in an hour": {time.Hour, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inFolders(t, func(t *testing.T, l Location) {
				j := open(t, l, "first")
				j.waitFor = time.Minute
				c := send(t, j, create, "")
				at := j.store.now().Add(test.off)
				if err := os.Chtimes(pathOf(c), at, at); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				wantTakeOver(t, open(t, l, "second"), create, "unknown")
				if took := time.Since(start); (took - test.want).Abs() > time.Second {
					t.Errorf("it took %s, want %s", took, test.want)
				}
				c.Answered("job-1") // its sender lives
				wantTakeOver(t, open(t, l, "third"), create, "job-1")
			})
		})
	}
}

// A response can come for the time to record the request, the request timeout and a margin.
func TestOpen_waitFor(t *testing.T) {
	if j := open(t, Location{Folder: t.TempDir()}, "run"); j.waitFor != 21*time.Second {
		t.Errorf("a request of one second is waited for %s, want 21s", j.waitFor)
	}
}
