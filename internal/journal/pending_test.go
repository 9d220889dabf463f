// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var errFault = errors.New("a fault")

// pendingFor opens a journal whose requests are pending for a short time.
func pendingFor(t *testing.T, l Location, run Run, wait time.Duration) (*Process, *Journal) {
	t.Helper()
	p, j := open(t, l, run)
	j.waitFor = wait
	return p, j
}

// What ends the wait for a request of a process that lives, or is believed to.
func TestStores_pendingOutcomes(t *testing.T) {
	key := CreateKey("a prompt")
	tests := []struct {
		name string
		wait time.Duration
		dead func(c *Call) bool
		then func(c *Call)
		want string
	}{
		{name: "the deadline passes", wait: 100 * time.Millisecond, want: "unknown"},
		{name: "it is withdrawn", wait: time.Hour, then: (*Call).Withdrawn, want: "none"},
		{name: "it is reported", wait: time.Hour, then: func(c *Call) { c.Unknown(); c.End() }, want: "none"},
		{name: "it is left to the next run", wait: time.Hour, then: func(c *Call) { c.journal.process.Stopping(); c.Unknown(); c.End() }, want: "unknown"},
		{name: "it is answered just before its sender dies", wait: time.Hour, dead: func(c *Call) bool { c.Answered("job-1"); return true }, want: "job-1"},
		{name: "its sender dies", wait: time.Hour, dead: func(*Call) bool { return true }, want: "unknown"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			places(t, func(t *testing.T, l Location) {
				_, j := pendingFor(t, l, "first", test.wait)
				c := send(t, j, key, "")
				sent := time.UnixMilli(c.Ref().At)
				_, next := open(t, l, "second")
				if test.dead != nil {
					fail(next, func(context.Context, string) error { return nil }).isDead = func() bool { return test.dead(c) }
				}
				if _, err := next.Announce(t.Context(), key); err != nil {
					t.Fatal(err)
				}
				if test.then != nil {
					test.then(c)
				}
				o, err := next.TakeOver(t.Context(), key)
				if err != nil || jobOf(o) != test.want {
					t.Fatalf("took over %s, %v; want %s", jobOf(o), err, test.want)
				}
				if o != nil && (o.SentAt.Sub(sent) > time.Second || sent.Sub(o.SentAt) > time.Second) {
					t.Errorf("sent at %s, want %s", o.SentAt, sent)
				}
				if test.want == "unknown" {
					if got := stored(t, l, nil); got != nil {
						t.Errorf("reported, and kept: %q", got)
					}
				}
			})
		})
	}
}

// A response that arrives after all is recorded again. Red with the id of the
// entry that was reported: its removal may still be under way.
func TestStores_lateResponse(t *testing.T) {
	key := CreateKey("a prompt")
	places(t, func(t *testing.T, l Location) {
		p, j := pendingFor(t, l, "first", 100*time.Millisecond)
		p.Stopping()
		c := send(t, j, key, "")
		_, next := open(t, l, "second")
		removing := make(chan struct{})
		fail(next, func(_ context.Context, op string) error {
			if op == "remove" { // the report's
				c.Answered("job-1")
				c.End()
				close(removing)
			}
			return nil
		})
		if got := takeOver(t, next, key); got != "unknown" {
			t.Errorf("took over %s", got)
		}
		<-removing
		_, third := open(t, l, "third")
		if got := takers(t, key, third, third); !cmp.Equal(got, []string{"job-1", "none"}) {
			t.Errorf("then took over %q", got)
		}
	})
}

// A late response whose request nobody has claimed stays where a caller waits
// for it. Red when each late response gets a new entry and the old one goes.
func TestStores_lateResponseIsAwaited(t *testing.T) {
	key := CreateKey("a prompt")
	places(t, func(t *testing.T, l Location) {
		_, j := open(t, l, "first")
		c := send(t, j, key, "")
		_, next := open(t, l, "second")
		if _, err := next.Announce(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		c.sentAt = c.sentAt.Add(-time.Hour) // its machine was asleep
		go c.Answered("job-1")
		if got := takeOver(t, next, key); got != "job-1" {
			t.Errorf("took over %s", got)
		}
	})
}

// The process that sent is killed: the next run does not wait for the deadline,
// an hour later.
func TestStores_senderKilled(t *testing.T) {
	places(t, func(t *testing.T, l Location) {
		child := startChild(t, "pending", l)
		child.line()
		_, next := open(t, l, "second")
		impatient, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if o, err := next.TakeOver(impatient, childKey); o != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while it lives: %s, %v", jobOf(o), err)
		}
		child.kill()
		if got := takeOver(t, next, childKey); got != "unknown" {
			t.Errorf("took over %s", got)
		}
	})
}

// X15: the time of an entry in a folder is wrong.
func TestFolder_clocks(t *testing.T) {
	key := CreateKey("a prompt")
	for name, test := range map[string]struct {
		off  time.Duration
		want time.Duration
	}{"right": {0, time.Minute}, "an hour ago": {-time.Hour, 0}, "in an hour": {time.Hour, time.Minute}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				l := Location{Named: true, Folder: dir}
				_, j := pendingFor(t, l, "first", time.Minute)
				c := send(t, j, key, "")
				at := j.store.now().Add(test.off)
				if err := os.Chtimes(filepath.Join(dir, c.entry.id+"-first"+suffix), at, at); err != nil {
					t.Fatal(err)
				}
				_, next := open(t, l, "second")
				start := time.Now()
				if got := takeOver(t, next, key); got != "unknown" {
					t.Errorf("took over %s", got)
				}
				if took := time.Since(start); took < test.want-time.Second || took > test.want+time.Second {
					t.Errorf("it took %s, want %s", took, test.want)
				}
				c.Answered("job-1") // its sender lives
				_, third := open(t, l, "third")
				if got := takeOver(t, third, key); got != "job-1" {
					t.Errorf("then took over %s", got)
				}
				crash(j)
				crash(next)
				crash(third)
			})
		})
	}
}

// A response can come for the time to record the request, the request timeout and a margin.
func TestOpen_waitFor(t *testing.T) {
	if _, j := open(t, Location{Folder: t.TempDir()}, "run"); j.waitFor != 21*time.Second {
		t.Errorf("a request of one second is waited for %s, want 21s", j.waitFor)
	}
}
