// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// Of the callers in one process, one gets each request of an earlier run, and a request of
// its own run stops none.
func TestStores_oneCallerEach(t *testing.T) {
	stores(t, func(t *testing.T, l store.Location) {
		post(t, l, "first", create, "job-1")
		post(t, l, "first", create, "job-2")
		lose(t, l, "first", create)
		post(t, l, "first", otherCreate, "job-3")
		j := open(t, l, "second")
		got := make([]string, 5)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { _, got[i] = request(t, j, create, func() string { return "job-4" }) })
		}
		wg.Wait()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"blocked", "sent job-4", "sent job-4", "taken over job-1", "taken over job-2"}, got); diff != "" {
			t.Error(diff)
		}
		wantStored(t, l, "create job-1 first", "create job-1 second", "create job-2 first", "create job-2 second",
			"create job-4 second", "create job-4 second", "create pending first", "other create job-3 first")
	})
}

// Each killed take-over leaves one more entry for the job. A state that has the job lists
// them all, and the next run removes them. (F9.)
func TestStores_takenOverAgainAndAgain(t *testing.T) {
	for key, name := range map[Key]string{create: "create", message: "message"} {
		t.Run(name, func(t *testing.T) {
			stores(t, func(t *testing.T, l store.Location) {
				post(t, l, "first", key, "job-1")
				want(t, open(t, l, "second"), key, "taken over job-1")
				c := want(t, open(t, l, "third"), key, "taken over job-1")
				wantStored(t, l, name+" job-1 first", name+" job-1 second", name+" job-1 third")
				if got := prune(t, open(t, l, "third"), c.Ref(Ref{})); len(got.Entries) != 3 {
					t.Errorf("a run must not remove what it has written itself: %v", got)
				}
				fourth := open(t, l, "fourth")
				if got := prune(t, fourth, c.Ref(Ref{})); len(got.Entries) != 3 || got.Run != "third" {
					t.Errorf("an entry that was listed must stay in the state: %v", got)
				}
				wantStored(t, l)
				if got := prune(t, open(t, l, "fifth"), c.Ref(Ref{})); len(got.Entries) > 0 || got.Run != "third" {
					t.Errorf("still superfluous: %v", got)
				}
			})
		})
	}
}

// The log tells what became of each request and entry, which support asks for.
func TestLog(t *testing.T) {
	l := store.Location{Folder: t.TempDir()}
	var got []string
	logged := func(run cli.Run, forget ...string) *Journal {
		j := open(t, l, run, forget...)
		j.Log = func(_ context.Context, decision, _, jobID string) {
			got = append(got, strings.TrimSpace(decision+" "+jobID))
		}
		return j
	}
	want(t, logged("first"), create, "sent job-new")
	want(t, logged("second"), create, "taken over job-new")
	c := logged("first").Begin(t.Context(), Request{Key: otherCreate})
	for _, end := range []func(){c.Withdrawn, c.Unknown} {
		if err := c.Sending(); err != nil {
			t.Fatal(err)
		}
		end()
	}
	want(t, logged("second", c.name.ID), otherCreate, "sent job-new")
	pending, earlier := "recording: pending", "withdrawn: "+ErrEarlier.Error()
	const removed = "removing: the request had no effect"
	if diff := cmp.Diff([]string{
		pending, "recording: accepted job-new",
		pending, earlier, removed, "found: accepted job-new", "recording: accepted job-new", "took over job-new",
		pending, removed, pending, "recording: unknown",
		pending, earlier, removed, "found: unknown", "removing: it was given up", pending, "recording: accepted job-new",
	}, got); diff != "" {
		t.Error(diff)
	}
}

// A job in the prior state is not lost, and the entry that names it becomes superfluous with
// the next request.
func TestStores_jobInState(t *testing.T) {
	stores(t, func(t *testing.T, l store.Location) {
		post(t, l, "first", create, "job-1")
		j := open(t, l, "second")
		j.InState("job-1")
		c := want(t, j, create, "sent job-new")
		prune(t, open(t, l, "third"), c.Ref(Ref{}))
		wantStored(t, l)
	})
}

// An unknown create blocks one equal one until a person gives it up; an unknown message counts as sent.
func TestStores_unknown(t *testing.T) {
	stores(t, func(t *testing.T, l store.Location) {
		id := lose(t, l, "first", create).name.ID
		want(t, open(t, l, "second"), create, "blocked")
		lost := lose(t, l, "first", message).name.ID
		c := want(t, open(t, l, "third", id, lost), create, "sent job-new")
		wantStored(t, l, "create job-new third", "message pending first")
		prune(t, open(t, l, "fourth"), c.Ref(Ref{}))
		want(t, open(t, l, "third", id, lost), message, "blocked")
		wantStored(t, l, "message pending first")
	})
}

// What a killed run had recorded and not sent is sent by the next one, if the store shows it, and no plan speaks of it.
// A sender that has not ended after all does not send it then.
func TestStores_unsent(t *testing.T) {
	stores(t, func(t *testing.T, l store.Location) {
		for _, key := range []Key{create, message} {
			killed := open(t, l, "first").Begin(t.Context(), Request{Key: key, ProjectID: "p"})
			if err := killed.Sending(); err != nil {
				t.Fatal(err)
			}
			if l.Folder == "" {
				wantFound(t, open(t, l, "second"), key, "unknown")
				want(t, open(t, l, "second"), key, "blocked")
				continue
			}
			wantFound(t, open(t, l, "second"), key)
			want(t, open(t, l, "second"), key, "sent job-new")
			if err := killed.Sent(); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v, want that its entry was removed", keyNames[key], err)
			}
		}
	})
}

// Of a mark and a removal, at most one succeeds, whatever comes between their steps.
func TestStores_markOrRemove(t *testing.T) {
	l := folder(t)
	for range 200 {
		j := open(t, l, "first")
		c := j.Begin(t.Context(), Request{Key: create, ProjectID: "p"})
		if err := c.writePending(); err != nil {
			t.Fatal(err)
		}
		var isMarked, isRemoved bool
		var both sync.WaitGroup
		both.Go(func() {
			if isMarked = c.Sent() == nil; isMarked {
				c.Accepted("job-1")
			}
		})
		both.Go(func() {
			isSent, err := j.store.RemoveUnsent(t.Context(), c.name)
			isRemoved = !isSent && err == nil
		})
		both.Wait()
		if e, err := j.store.Read(t.Context(), c.name); isMarked && (isRemoved || e == nil) || err != nil {
			t.Fatalf("marked %t, removed %t, entry %+v, %v", isMarked, isRemoved, e, err)
		}
		c.Withdrawn()
	}
}

// Whoever gives up a job that is gone gives up all entries that name it.
func TestStores_givenUp(t *testing.T) {
	stores(t, func(t *testing.T, l store.Location) {
		post(t, l, "first", create, "job-1")
		want(t, open(t, l, "second"), create, "taken over job-1")
		j := open(t, l, "third")
		c := j.Begin(t.Context(), Request{Key: create, ProjectID: "p"})
		defer c.End()
		if err := c.Sending(); !errors.Is(err, ErrEarlier) {
			t.Fatal(err)
		}
		e, err := c.Earlier(t.Context())
		if err = errors.Join(err, c.GiveUp(e)); err != nil {
			t.Error(err)
		}
		wantStored(t, l)
	})
}

// A later message makes the earlier ones to the job superfluous, whatever the clocks say (F8):
// repeating one is then deliberate.
func TestStores_earlierMessages(t *testing.T) {
	stores(t, func(t *testing.T, l store.Location) {
		post(t, l, "first", message, "job-1")
		c := want(t, open(t, l, "second"), otherMessage, "sent job-new")
		wantStored(t, l, "message job-1 first", "other message job-new second")
		third := open(t, l, "third")
		prune(t, third, c.Ref(Ref{}))
		want(t, third, message, "sent job-new")
	})
}

// A run that is killed before it looks leaves an unknown message beside the accepted one. The
// state that shows the prompt makes both superfluous.
func TestStores_equalMessages(t *testing.T) {
	stores(t, func(t *testing.T, l store.Location) {
		post(t, l, "first", message, "job-1")
		if err := open(t, l, "second").Begin(t.Context(), Request{Key: message}).record(t.Context(), store.Entry{Status: store.Pending}); err != nil {
			t.Fatal(err)
		}
		c := want(t, open(t, l, "third"), message, "taken over job-1")
		prune(t, open(t, l, "fourth"), c.Ref(Ref{}))
		wantStored(t, l)
	})
}

// A refused request is removed; its id is never used again, so a removal that arrives late removes nothing else.
func TestStores_newNameForEachAttempt(t *testing.T) {
	stores(t, func(t *testing.T, l store.Location) {
		c := lose(t, l, "first", create)
		first := c.name
		c.Withdrawn()
		if err := c.Sending(); err != nil || c.name.ID == first.ID {
			t.Errorf("%v, %s again", err, c.name)
		}
		c.Accepted("job-1")
		c.End()
		if err := open(t, l, "late").store.Remove(t.Context(), first); err != nil || c.Problem() != nil {
			t.Error(err, c.Problem())
		}
		wantStored(t, l, "create job-1 first")
	})
}

// The next run waits for a response that can still arrive: the sender's CLI was killed, or
// another run continues without a lock. Red without: pending and waitedFor in Earlier, Ended and Deadline in describe.
func TestEarlier_X15_waits(t *testing.T) {
	for _, test := range []struct {
		name  string
		end   func(c *Call)
		ended bool // the sender is known to have
		want  string
		took  time.Duration
		third bool          // a third run sends as well then, and is refused 38 seconds later
		ahead time.Duration // is the sender's clock
	}{
		{"accepted", func(c *Call) { c.Accepted("job-1") }, false, "taken over job-1", 5 * time.Second, false, 0},
		{"withdrawn", (*Call).Withdrawn, false, "sent job-new", 5 * time.Second, false, 0},
		{"given up", (*Call).Unknown, false, "blocked", 5 * time.Second, false, 0},
		{"sender ended", func(*Call) {}, true, "blocked", 0, false, 0},
		{"nothing", func(*Call) {}, false, "blocked", 41 * time.Second, false, 0},
		{"nothing, and its clock is ahead", func(*Call) {}, false, "blocked", 41 * time.Second, false, time.Hour},
		{"nothing, and its clock is behind", func(*Call) {}, false, "blocked", 0, false, -time.Hour},
		{"withdrawn, but another is not", (*Call).Withdrawn, false, "sent job-new", 43 * time.Second, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := folder(t)
				c := lose(t, l, "first", create)
				c.entry.SentAt, c.entry.Deadline = c.entry.SentAt.Add(test.ahead), c.entry.Deadline.Add(test.ahead)
				if err := c.write(t.Context()); err != nil {
					t.Fatal(err)
				}
				j := open(t, l, "second")
				j.process.Ended = func(cli.Sender) bool { return test.ended }
				time.AfterFunc(5*time.Second, func() {
					test.end(c)
					if test.third {
						time.AfterFunc(38*time.Second, lose(t, l, "third", create).Withdrawn)
					}
				})
				start := time.Now()
				want(t, j, create, test.want)
				if took := time.Since(start); took < test.took || took > test.took+2*time.Second {
					t.Errorf("took %s, want %s", took, test.took)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// blind lists nothing, as a cache or another server does.
type blind struct{ store.Store }

func (blind) List(context.Context, string) ([]store.Name, error) { return nil, nil }

// A record that may not be there keeps the request from being sent. X14: after an error nothing is left behind.
func TestSending_faults(t *testing.T) {
	l := folder(t)
	j := open(t, l, "first")
	c := j.Begin(t.Context(), Request{Key: create})
	j.store = blind{j.store}
	if _, ok := errors.AsType[*Error](c.Sending()); !ok {
		t.Error("a listing without what was written shows that there is nothing")
	}
	c.End()
	wantStored(t, l)
	arrives := func(_ context.Context, _ func(), access func() error) error { return errors.Join(access(), errFault) }
	hangs := func(ctx context.Context, _ func(), _ func() error) error { return hang(ctx) }
	cancelled := func(_ context.Context, cancel func(), access func() error) error { cancel(); return access() }
	for _, test := range []struct {
		op    string
		fault func(ctx context.Context, cancel func(), access func() error) error
		want  error
	}{
		{"write", arrives, errFault},
		{"write", hangs, context.DeadlineExceeded},
		{"write", cancelled, context.Canceled},
		{"list", arrives, errFault},
		{"list", hangs, context.DeadlineExceeded},
		{"list", cancelled, context.Canceled},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := folder(t)
			j := open(t, l, "first")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c, whole := j.Begin(ctx, Request{Key: create}), j.store
			fail(j, func(ctx context.Context, op string, access func() error) error {
				if op != test.op {
					return access()
				}
				return test.fault(ctx, cancel, access)
			})
			began := time.Now()
			err := c.Sending()
			if took := time.Since(began); !errors.Is(err, test.want) || errors.Is(err, context.Canceled) && took > 0 {
				t.Errorf("%s: %v after %s, want %v", test.op, err, took, test.want)
			}
			c.End()
			wantStored(t, l)
			j.store = whole
			want(t, j, create, "sent job-new") // by a later call of the run
		})
	}
}

// What cannot be recorded is a problem to be reported, and tried once more when the call ends.
func TestCall_triedAgain(t *testing.T) {
	accepted := func(c *Call) { c.Accepted("job-1") }
	for _, test := range []struct {
		do     func(c *Call)
		op     string
		broken int // so many times
		stored []string
	}{
		{accepted, "write", 1, []string{"create job-1 first"}},
		{accepted, "write", 2, []string{"create pending first"}},
		{(*Call).Withdrawn, "remove", 1, nil},
		{(*Call).Withdrawn, "remove", 2, []string{"create pending first"}},
	} {
		l := folder(t)
		c := lose(t, l, "first", create)
		failing(c.journal, test.op, 1, test.broken)
		test.do(c)
		if err := c.Problem(); !errors.Is(err, errFault) {
			t.Errorf("%s: problem %v", test.op, err)
		}
		if c.End(); (c.Problem() == nil) != (test.broken == 1) {
			t.Errorf("%s: problem %v after the second try", test.op, c.Problem())
		}
		wantStored(t, l, test.stored...)
	}
}

// The store fails while another run's request is taken over: nothing is sent, and the next attempt takes it over.
func TestTake_faults(t *testing.T) {
	for op, number := range map[string]int{"read": 1, "write": 2} { // the first write is that of the request's own entry
		l := folder(t)
		post(t, l, "first", create, "job-1")
		j := open(t, l, "second")
		failing(j, op, number, number)
		want(t, j, create, "failed")
		wantStored(t, l, "create job-1 first")
		want(t, open(t, l, "second"), create, "taken over job-1")
	}
}

// Each entry has its own time to be read.
func TestEarlier_many(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := folder(t)
		for i := range 20 {
			post(t, l, "first", create, fmt.Sprint("job-", i))
		}
		j := open(t, l, "second")
		fail(j, func(ctx context.Context, op string, access func() error) error {
			if op == "read" {
				time.Sleep(opTimeout / 10)
			}
			return errors.Join(ctx.Err(), access())
		})
		if _, got := request(t, j, create, nil); !strings.HasPrefix(got, "taken over job-") {
			t.Error(got)
		}
	})
}

// Drain waits until the outcome is recorded, or a record without an effect is removed.
func TestCall_holdsItsProcess(t *testing.T) {
	l := folder(t)
	for name, end := range map[string]func(*Call){
		"accepted": func(c *Call) { c.Accepted("job-1") }, "unknown": (*Call).Unknown, "withdrawn": (*Call).Withdrawn,
		"panic": (*Call).End,
	} {
		c := lose(t, l, "first", store.CreateKey("p", name, ""))
		wantHeld := func(until string) {
			short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer stop()
			if c.journal.process.Drain(short); short.Err() == nil {
				t.Errorf("%s: did not wait for %s", name, until)
			}
		}
		wantHeld("a request that is recorded")
		fail(c.journal, func(_ context.Context, _ string, access func() error) error {
			wantHeld("the record of the outcome")
			return access()
		})
		end(c)
		c.journal.process.Drain(t.Context())
	}
}
