// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Of the callers in one process, one gets each request. It is announced to all before.
func TestStores_oneCaller(t *testing.T) {
	stores(t, func(t *testing.T, l Location) {
		first := open(t, l, "first")
		post(t, first, create, "", "job-1")
		post(t, first, create, "", "job-2")
		c := send(t, first, create, "")
		c.Unknown()
		c.End()
		j := open(t, l, "second")
		for range 2 {
			found, err := j.Announce(t.Context(), create)
			var jobs []string
			for _, o := range found {
				jobs = append(jobs, jobOf(o))
			}
			slices.Sort(jobs) // a bucket's clock shows whole seconds
			if diff := cmp.Diff([]string{"job-1", "job-2", "unknown"}, jobs); diff != "" || err != nil {
				t.Errorf("announced, %v (-want +got):\n%s", err, diff)
			}
		}
		got := make([]string, 4)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i] = takeOver(t, j, create) })
		}
		wg.Wait()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"job-1", "job-2", "none", "unknown"}, got); diff != "" {
			t.Error(diff)
		}
		wantStored(t, l, "create job-1 second", "create job-2 second", "create pending first")
	})
}

// Two processes take over one request at the same moment. Those of one run, provider
// aliases, must not share it; one of another run is a killed one's. Red without: existed in
// Take; the run in hasOther.
func TestFolder_takeRace(t *testing.T) {
	for name, other := range map[string]struct {
		run  Run
		want []string
	}{"alias": {"second", []string{"job-1"}}, "killed": {"killed", []string{"job-1", "job-1"}}} {
		t.Run(name, func(t *testing.T) {
			folders(t, func(t *testing.T, l Location) {
				post(t, open(t, l, "first"), create, "", "job-1")
				var got []string
				a, b := open(t, l, other.run), open(t, l, "second")
				oa, _ := a.Find(t.Context(), create)
				ob, _ := b.Find(t.Context(), create)
				for _, race := range []func() (bool, Ref, error){
					func() (bool, Ref, error) { return a.Take(t.Context(), oa) }, func() (bool, Ref, error) { return b.Take(t.Context(), ob) },
				} {
					taken, _, err := race()
					if err != nil {
						t.Error(err)
					}
					if taken {
						got = append(got, "job-1")
					}
				}
				if diff := cmp.Diff(other.want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// What a process whose CLI was killed has just taken over is found in its new entry.
func TestStores_takenMeanwhile(t *testing.T) {
	stores(t, func(t *testing.T, l Location) {
		post(t, open(t, l, "first"), create, "", "job-1")
		killed, j := open(t, l, "killed"), open(t, l, "third")
		if _, err := j.Announce(t.Context(), create); err != nil {
			t.Error(err)
		}
		wantTakeOver(t, killed, create, "job-1", "none")
		wantTakeOver(t, j, create, "job-1", "none")
		wantStored(t, l, "create job-1 third")
	})
}

// A folder that cannot be used any more sends nothing twice. An entry that cannot be
// moved to this run stays, and the state names it.
func TestTake_faults(t *testing.T) {
	for _, op := range []string{"read", "write", "remove"} {
		t.Run(op, func(t *testing.T) {
			folders(t, func(t *testing.T, l Location) {
				old := post(t, open(t, l, "first"), create, "", "job-1").Ref()
				j := open(t, l, "second")
				fail(j, op, fault)
				o, err := j.Find(t.Context(), create)
				if failed := op == "read" && l.Named; (err != nil) != failed || failed {
					return
				}
				taken, ref, err := j.Take(t.Context(), o)
				if !taken || (ref == old) != (op == "write") || errors.As(err, new(*Error)) != (op != "read") {
					t.Error(taken, ref, err)
				}
				later := open(t, l, "third")
				if err := later.Seen(t.Context(), "job-1", ref); err != nil {
					t.Error(err)
				}
				wantStored(t, l)
			})
		})
	}
}

// A crash between the two steps of a take-over leaves two entries for one request. One is
// taken over, and the next run removes both.
func TestStores_twoEntriesForOneRequest(t *testing.T) {
	for key, job := range map[Key]string{create: "", later: "job-1"} {
		t.Run(keyNames[key], func(t *testing.T) {
			stores(t, func(t *testing.T, l Location) {
				post(t, open(t, l, "first"), key, job, "job-1")
				crashed := open(t, l, "second")
				fail(crashed, "remove", fault)
				o, err := crashed.Find(t.Context(), key)
				if err == nil {
					_, _, err = crashed.Take(t.Context(), o)
				}
				if !errors.Is(err, errFault) {
					t.Error(err)
				}
				wantStored(t, l, keyNames[key]+" job-1 first", keyNames[key]+" job-1 second")
				third := open(t, l, "third")
				o, err = third.Find(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				_, ref, err := third.Take(t.Context(), o)
				if err != nil || third.TookOver(t.Context(), "job-1") != (key == create) || third.TookOver(t.Context(), "job-2") {
					t.Errorf("%v, or the run does not know what it took over", err)
				}
				if key == create { // the job is not taken over twice
					wantTakeOver(t, third, key, "none")
				}
				if err := open(t, l, "fourth").Seen(t.Context(), "job-1", ref); err != nil {
					t.Error(err)
				}
				wantStored(t, l)
			})
		})
	}
}

// What ends the wait for a request of a process that lives, or is believed to.
func TestStores_pendingOutcomes(t *testing.T) {
	for _, test := range []struct {
		name   string
		wait   time.Duration
		then   func(j *Journal, c *Call) // once j knows the request
		want   string
		stored []string
	}{
		{"the deadline passes", 100 * time.Millisecond, func(*Journal, *Call) {}, "unknown", []string{"create pending first"}},
		{"it is withdrawn", time.Hour, func(_ *Journal, c *Call) { c.Withdrawn() }, "none", nil},
		{"its call ends", time.Hour, func(_ *Journal, c *Call) { c.Unknown(); c.End() }, "unknown", []string{"create pending first"}},
		{"it is answered just before its sender dies", time.Hour, func(j *Journal, c *Call) {
			j.process.Ended = func(Sender) bool { c.Accepted("job-1"); return true }
		}, "job-1", []string{"create job-1 second"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			stores(t, func(t *testing.T, l Location) {
				first := open(t, l, "first")
				first.waitFor = test.wait
				c := send(t, first, create, "")
				sent := time.UnixMilli(c.Ref().At)
				j := open(t, l, "second")
				_ = j.ready(t.Context())
				test.then(j, c)
				o, err := j.Find(t.Context(), create)
				if err != nil || jobOf(o) != test.want || o != nil && (!o.SentAt.Equal(sent) || o.Unknown != (o.JobID == "")) {
					t.Fatalf("found %s, %+v, %v; want %s, sent at %s", jobOf(o), o, err, test.want, sent)
				}
				if o != nil && !o.Unknown {
					if taken, ref, err := j.Take(t.Context(), o); !taken || ref.At != c.Ref().At || err != nil {
						t.Error(taken, ref, err)
					}
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
		j.entries[id] = &entry{id: id, Accepted: i < 8, SentAt: int64(1 + (i/4+2)%4)}
	}
	var got string
	for _, e := range j.matching(func(*entry) bool { return true }) {
		got += e.id
	}
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Requests that are answered while callers wait for them: one for each caller.
func TestStores_X16_equalKeysAnsweredMeanwhile(t *testing.T) {
	stores(t, func(t *testing.T, l Location) {
		first, j := open(t, l, "first"), open(t, l, "second")
		calls := []*Call{send(t, first, create, ""), send(t, first, create, ""), send(t, first, create, "")}
		_ = j.ready(t.Context())
		got := make([]string, len(calls))
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i] = takeOver(t, j, create) })
		}
		for i, c := range calls {
			c.Accepted(fmt.Sprint("job-", i))
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
	if bootID() == "" {
		t.Skip("without a boot id, nothing shows that another process has ended: the next run waits for the deadline")
	}
	stores(t, func(t *testing.T, l Location) {
		child := startChild(t, "pending", l)
		child.line()
		j := open(t, l, "second")
		impatient, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if o, err := j.Find(impatient, childKey); o != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while it lives: %s, %v", jobOf(o), err)
		}
		child.kill()
		wantTakeOver(t, j, childKey, "unknown")
	})
}

// The clock of a folder differs from that of a machine. A response can come for the time
// to record the request, the request timeout and a margin.
func TestFolder_X15_clocks(t *testing.T) {
	const wait = 21 * time.Second
	for name, test := range map[string]struct{ off, want time.Duration }{
		"right": {0, wait}, "an hour ago": {-time.Hour, 0}, "in an hour": {time.Hour, wait},
	} {
		t.Run(name, func(t *testing.T) {
			inFolders(t, func(t *testing.T, l Location) {
				setAge(t, pathOf(send(t, open(t, l, "first"), create, "")), -test.off)
				start := time.Now()
				wantTakeOver(t, open(t, l, "second"), create, "unknown")
				if took := time.Since(start); (took - test.want).Abs() > time.Second {
					t.Errorf("it took %s, want %s", took, test.want)
				}
			})
		})
	}
}

// The folder's clock orders what machines with different clocks have sent.
func TestFolder_X15_order(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		before := time.Now().Add(-time.Second)
		synctest.Test(t, func(t *testing.T) { // in another millennium
			at := time.UnixMilli(post(t, open(t, l, "first"), create, "", "job-1").Ref().At)
			if at.Before(before) || at.After(before.Add(time.Minute)) {
				t.Errorf("sent at %s, which is not the folder's time", at)
			}
		})
	})
}
