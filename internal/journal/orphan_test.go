// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Whoever wants an entry at the same time, one gets it. It is announced to all before.
func TestStores_claimRace(t *testing.T) {
	for want, end := range map[string]func(c *Call){"unknown": (*Call).Unknown, "job-1": func(c *Call) { c.Answered("job-1") }} {
		for _, other := range []Run{"second", "third"} {
			t.Run(fmt.Sprintf("%s, wanted by second and %s", want, other), func(t *testing.T) {
				stores(t, func(t *testing.T, l Location) {
					j := open(t, l, "first")
					c := send(t, j, create, "")
					j.process.Stopping()
					end(c)
					c.End()
					j.process.Close(t.Context())

					a, b := open(t, l, "second"), open(t, l, other)
					for _, j := range []*Journal{a, b, a, b} { // both know the entry before one takes it
						o, err := j.Announce(t.Context(), create)
						if err != nil || len(o) != 1 || jobOf(o[0]) != want {
							t.Errorf("announced %v, %v", o, err)
						}
					}
					got := make([]string, 4)
					var wg sync.WaitGroup
					for i, j := range []*Journal{a, b, a, b} {
						wg.Go(func() { got[i] = takeOver(t, j, create) })
					}
					wg.Wait()
					got = slices.DeleteFunc(got, func(job string) bool { return job == "none" })
					if diff := cmp.Diff([]string{want}, got); diff != "" {
						t.Error(diff)
					}
				})
			})
		}
	}
}

// The entries of another process of the same run, such as a provider alias, are
// neither taken nor waited for.
func TestStores_sameRun(t *testing.T) {
	stores(t, func(t *testing.T, l Location) {
		first := open(t, l, "run")
		send(t, first, create, "")
		post(t, first, create, "", "job-1")
		alias := open(t, l, "run")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		announced, announceErr := alias.Announce(ctx, create)
		taken, takeErr := alias.TakeOver(ctx, create)
		if announced != nil || taken != nil || announceErr != nil || takeErr != nil {
			t.Errorf("%v, %v, %s, %v", announced, announceErr, jobOf(taken), takeErr)
		}
		if first.TookOver(ctx, "job-1") || alias.TookOver(ctx, "job-1") {
			t.Error("a run has taken over what it started")
		}
		wantTakeOver(t, open(t, l, "next"), create, "job-1")
	})
}

// A default folder that cannot be used any more sends nothing twice.
func TestTakeOver_defaultFolderFails(t *testing.T) {
	for _, op := range []string{"read", "claim"} {
		t.Run(op, func(t *testing.T) {
			folders(t, func(t *testing.T, l Location) {
				j := open(t, l, "first")
				post(t, j, create, "", "job-1")
				crash(j)
				next, _ := openReporting(t, l, "second")
				f := fail(next, op, fault)
				o, err := next.TakeOver(t.Context(), create)
				if got := jobOf(o); (err != nil) != l.Named || got != in(l, "job-1", "none") {
					t.Errorf("took over %s, %v", got, err)
				}
				next.store = f.store
				wantTakeOver(t, next, create, in(l, "none", "job-1"))
			})
		})
	}
}

// What a run makes of a request that it took over, and ends undisturbed.
func TestStores_takenOver(t *testing.T) {
	for _, test := range []struct {
		name             string
		do               func(j *Journal, o *Orphan) error
		byDefault, named string
	}{
		{"into the state", func(*Journal, *Orphan) error { return nil }, "none", "job-1"},
		{"kept", func(j *Journal, o *Orphan) error { j.Keep(o); return nil }, "job-1", "job-1"},
		{"dropped", func(j *Journal, o *Orphan) error { return j.Drop(t.Context(), o) }, "none", "none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			stores(t, func(t *testing.T, l Location) {
				post(t, open(t, l, "first"), create, "", "job-1")
				next := open(t, l, "second")
				took := []bool{next.TookOver(t.Context(), "job-1")}
				o, err := next.TakeOver(t.Context(), create)
				if err != nil {
					t.Fatal(err)
				}
				alias := open(t, l, "second")
				took = append(took, next.TookOver(t.Context(), "job-1"), alias.TookOver(t.Context(), "job-1"), next.TookOver(t.Context(), "job-2"))
				if diff := cmp.Diff([]bool{false, true, true, false}, took); diff != "" {
					t.Error(diff)
				}
				if err := test.do(next, o); err != nil {
					t.Error(err)
				}
				next.process.Close(t.Context())
				wantTakeOver(t, open(t, l, "third"), create, in(l, test.byDefault, test.named))
			})
		})
	}
}

// What ends the wait for a request of a process that lives, or is believed to.
func TestStores_pendingOutcomes(t *testing.T) {
	for _, test := range []struct {
		name   string
		wait   time.Duration
		then   func(next *Journal, c *Call) // once next knows the request
		want   string
		stored []string
	}{
		{"the deadline passes", 100 * time.Millisecond, func(*Journal, *Call) {}, "unknown", nil}, // reported once
		{"it is withdrawn", time.Hour, func(_ *Journal, c *Call) { c.Withdrawn() }, "none", nil},
		{"it is left to the next run", time.Hour, func(_ *Journal, c *Call) { c.journal.process.Stopping(); c.Unknown(); c.End() }, "unknown", nil},
		{"it is answered just before its sender dies", time.Hour, func(next *Journal, c *Call) {
			fail(next, "", nil).isDead = func() bool { c.Answered("job-1"); return true }
		}, "job-1", []string{"create job-1 second"}},
		// Red when a lost claim, or the answer in a claimed file, is not looked at again.
		{"it is answered between the last look and the claim", time.Hour, func(next *Journal, c *Call) {
			var once sync.Once
			f := fail(next, "claim", func(context.Context) error { once.Do(func() { c.Answered("job-1") }); return nil })
			f.isDead = func() bool { return true }
		}, "job-1", []string{"create job-1 second"}},
		// Red with the id of the entry that was reported: its removal may still be under way.
		{"the response arrives after the report", 100 * time.Millisecond, func(next *Journal, c *Call) {
			fail(next, "remove", func(context.Context) error { c.Answered("job-1"); return nil })
		}, "unknown", []string{"create job-1 first"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			stores(t, func(t *testing.T, l Location) {
				j := open(t, l, "first")
				j.waitFor = test.wait
				c := send(t, j, create, "")
				sent := time.UnixMilli(c.Ref().At)
				next := open(t, l, "second")
				_ = next.ready(t.Context())
				test.then(next, c)
				o, err := next.TakeOver(t.Context(), create)
				if err != nil || jobOf(o) != test.want || o != nil && o.SentAt.Sub(sent).Abs() > time.Second {
					t.Fatalf("took over %s, %+v, %v; want %s, sent at %s", jobOf(o), o, err, test.want, sent)
				}
				wantStored(t, l, test.stored...)
			})
		})
	}
}

// A plan announces what its apply takes over, so both find entries in one order:
// answered ones first, then by age.
func TestMatching(t *testing.T) {
	const want = "abcdefghijklmnop"
	j := &Journal{entries: map[string]*entry{}}
	for i, id := range strings.Split(want, "") {
		j.entries[id] = &entry{id: id, Answered: i < 8, SentAt: int64(1 + (i/4+2)%4)}
	}
	var got string
	for _, e := range j.matching(func(*entry) bool { return true }) {
		got += e.id
	}
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Late responses whose requests nobody has claimed stay where callers wait for
// them, one for each. Red when each late response gets a new entry and the old one
// goes; when a caller gets an entry that another one waits for.
func TestStores_X16_equalKeysAnsweredMeanwhile(t *testing.T) {
	stores(t, func(t *testing.T, l Location) {
		j, next := open(t, l, "first"), open(t, l, "second")
		calls := []*Call{send(t, j, create, ""), send(t, j, create, ""), send(t, j, create, "")}
		_ = next.ready(t.Context())
		got := make([]string, len(calls))
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i] = takeOver(t, next, create) })
		}
		for i, c := range calls {
			c.sentAt = c.sentAt.Add(-time.Hour) // its machine was asleep
			c.Answered(fmt.Sprint("job-", i))
		}
		wg.Wait()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"job-0", "job-1", "job-2"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// The process that sent is killed: the next run does not wait for the deadline,
// an hour later.
func TestStores_senderKilled(t *testing.T) {
	stores(t, func(t *testing.T, l Location) {
		if l.Bucket != "" && bootID() == "" {
			t.Skip("without a boot id, only a folder's lock shows that another process has ended")
		}
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

// The time of an entry in a folder is wrong. A response can come for the time to
// record the request, the request timeout and a margin.
func TestFolder_X15_clocks(t *testing.T) {
	const wait = 21 * time.Second
	for name, test := range map[string]struct{ off, want time.Duration }{
		"right": {0, wait}, "an hour ago": {-time.Hour, 0}, "in an hour": {time.Hour, wait},
	} {
		t.Run(name, func(t *testing.T) {
			inFolders(t, func(t *testing.T, l Location) {
				j := open(t, l, "first")
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
