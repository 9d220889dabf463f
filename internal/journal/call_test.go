// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// What each step costs, and what it writes. (S06)
func TestCall_accesses(t *testing.T) {
	const none, other = "", "1"
	other2 := create("n", "y")
	other2.Arguments = "2"
	for _, row := range []struct {
		name    string
		isLocal bool
		before  string // the run that has started the job
		wanted  Wanted
		want    string
		ops     string
		wrote   []string
	}{
		{"create", false, none, create("n", "x"), "sent", "put put", []string{"claim create", "job-2 create"}},
		{
			"create, local", true, none, create("n", "x"), "sent", "put put put",
			[]string{"claim unsent create", "claim create", "job-2 create"},
		},
		{
			"successor", false, other, other2, "sent", "put get get put put",
			[]string{"job-1 create, claim create", "job-2 create"},
		},
		{"adoption", false, other, create("n", "x"), "adopted job-1", "put get get put", []string{"job-1 create, adopted"}},
		{"another prompt", false, other, create("n", "y"), "beside", "put get get", nil},
		{
			"message", false, other, message("n", "job-1", "y"), "sent", "get put put",
			[]string{"job-1 create, claim message", "job-1 message"},
		},
		{
			"message, local", true, other, message("n", "job-1", "y"), "sent", "get put put put",
			[]string{"job-1 create, claim unsent message", "job-1 create, claim message", "job-1 message"},
		},
		{"message that was sent", false, other, message("n", "job-1", "x"), "already sent", "get", nil},
		{"message to a job without a record", false, none, message("n", "J", "x"), "sent", "get put put", []string{"claim message", "J message"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld()
			if row.before != "" {
				j, _ := w.open(row.before)
				want(t, "earlier", request(t, j, create("n", "x"), "job-1"), "sent")
			}
			w.history = nil
			j, c := w.open("2")
			c.isLocal = row.isLocal
			want(t, "result", request(t, j, row.wanted, "job-2"), row.want)
			want(t, "accesses", c.took(), row.ops)
			w.wrote(t, row.wrote...)
			short, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if j.process.Drain(short); short.Err() != nil {
				t.Error("the process waits for an outcome")
			}
		})
	}
}

// A process proves once that the store honours conditions, before it relies on them. Until that succeeds, nothing is sent. (S03)
func TestCall_prove(t *testing.T) {
	w := newWorld()
	j, c := w.open("1")
	j.isProven, c.fault = false, times("prove", lostRequest)
	want(t, "first", request(t, j, create("n", "x"), "job-1"), "failed")
	want(t, "accesses", c.took(), "prove")
	want(t, "second", request(t, j, create("n", "x"), "job-1"), "sent")
	want(t, "accesses", c.took(), "prove put put")
	want(t, "third", request(t, j, create("m", "x"), "job-2"), "sent")
	want(t, "accesses", c.took(), "put put")
}

// Of two runs that want one name, the second one meets the first one's claim, also if it came between look and claim. A claim that was
// refused is not what the state must know.
func TestCall_taken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		first, _ := w.open("1")
		want(t, "created", request(t, first, create("n", "x"), "J"), "sent")
		second, ops := w.open("2")
		slow := second.Begin(t.Context(), message("n", "J", "y"))
		if verdict, _, err := slow.Look(t.Context()); verdict != Send || err != nil {
			t.Fatal(verdicts[verdict], err)
		}
		want(t, "adopted", request(t, first, create("n", "x"), ""), "adopted J")
		fast := claim(t, first, message("n", "J", "y"))
		w.history = nil
		if err := slow.Claim(); !errors.Is(err, ErrTaken) {
			t.Fatal(err)
		}
		w.wrote(t)
		ops.took()
		began := time.Now()
		accepted := make(chan bool)
		time.AfterFunc(700*time.Millisecond, func() { fast.Accepted("J"); close(accepted) })
		verdict, r, err := slow.Look(t.Context())
		want(t, "verdict", verdicts[verdict], "already sent")
		want(t, "accesses", ops.took(), "get get get")
		if r.JobID != "J" || r.Holder == "" || slow.Holder() != r.Holder || err != nil || time.Since(began) != time.Second {
			t.Errorf("%+v, adoption %s, %v after %v", r, slow.Holder(), err, time.Since(began))
		}
		<-accepted
	})
}

// A wait ends with the call, with the deadline, and at the latest after as long as the claim can last, by the own clock.
func TestLook_N06_waits(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*world, *Request)
		want   string
		after  time.Duration
	}{
		"until the deadline":     {func(*world, *Request) {}, "unknown", 61 * time.Second},
		"X15 its clock is ahead": {func(_ *world, r *Request) { r.SentAt, r.Deadline = r.SentAt.Add(time.Hour), r.Deadline.Add(time.Hour) }, "unknown", 61 * time.Second},
		"its deadline is no deadline": {
			func(_ *world, r *Request) { r.Deadline = r.Deadline.AddDate(7973, 0, 0) }, "unknown", time.Minute + longestRequest,
		},
		"its clock is behind": {func(_ *world, r *Request) {
			r.SentAt, r.Deadline = r.SentAt.Add(-time.Hour), r.Deadline.Add(-time.Hour)
		}, "unknown", 0},
		"it has sent nothing":       {func(w *world, r *Request) { r.Unsent = true; w.end("1") }, "send", 0},
		"X16 the call is cancelled": {func(*world, *Request) {}, "", 10 * time.Second},
		"the store has vanished":    {func(*world, *Request) {}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				first, _ := w.open("1")
				c := claim(t, first, create("n", "x"))
				r := *c.written
				row.change(w, r.Claim)
				c.text, _, _ = first.put(t.Context(), &r, c.text)

				j, ops := w.open("2")
				ctx := t.Context()
				switch name {
				case "X16 the call is cancelled":
					short, cancel := context.WithTimeout(ctx, row.after)
					defer cancel()
					ctx = short
				case "the store has vanished":
					ops.fault = times("get", hangs)
					row.after = opTimeout
				}
				began := time.Now()
				verdict, got, err := j.Begin(ctx, create("n", "x")).Look(ctx)
				if row.want == "" && err == nil || row.want != "" && (err != nil || verdicts[verdict] != row.want || got.Claim != nil) {
					t.Errorf("%s, %+v, %v", verdicts[verdict], got, err)
				}
				if waited := time.Since(began); waited < row.after || waited > row.after+pollInterval {
					t.Errorf("waited %v", waited)
				}
			})
		})
	}
}

// A store that shows another version in each read is not asked, nor connected to the service for, without a pause and an end.
//
// Red without: taken in Look.
func TestLook_endless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		j, ops := w.open("1")
		want(t, "first", request(t, j, create("n", "x"), "J"), "sent")
		if _, err := j.Free(t.Context(), object, false); err != nil {
			t.Fatal(err)
		}
		ops.fault = func(op string) fault {
			w.mu.Lock()
			defer w.mu.Unlock()
			if k := w.kept[key("p", "n")]; op == "put" {
				k.Version += "'"
				w.kept[key("p", "n")] = k
			}
			return none
		}
		began := time.Now()
		want(t, "second", request(t, j, create("n", "y"), "K"), "failed")
		if took := time.Since(began); took == 0 || took > maxConflicts*pollInterval {
			t.Errorf("took %v", took)
		}
	})
}

// However a write fails, nothing is sent after it, and what was there is put back, so that the next run need not wait; a request or
// response that is lost once, or that a library repeats, does not matter to an outcome. (S04)
func TestCall_faults(t *testing.T) {
	for name, row := range map[string]struct {
		isLocal bool
		puts    []fault
		want    string
		wrote   []string
	}{
		"no request arrives at first":  {false, []fault{lostRequest, lostRequest, lostRequest}, "failed", []string{"free"}},
		"the claim's response is lost": {false, []fault{lostResponse}, "sent", []string{"claim create", "job-2 create"}},
		"the claim is repeated":        {false, []fault{repeated}, "sent", []string{"claim create", "job-2 create"}},
		"the claim arrives late":       {false, []fault{late}, "failed", []string{"free"}},
		"a conflict does not show":     {false, []fault{conflicts, conflicts}, "sent", []string{"claim create", "job-2 create"}},
		"the store hangs":              {false, []fault{hangs}, "failed", []string{"free"}},
		"the mark does not arrive":     {true, []fault{none, lostRequest}, "failed", []string{"claim unsent create", "free"}},
		"the mark's response is lost": {
			true, []fault{none, lostResponse}, "sent", []string{"claim unsent create", "claim create", "job-2 create"},
		},
		"the mark arrives late":          {true, []fault{none, late}, "failed", []string{"claim unsent create", "free"}},
		"the outcome's response is lost": {false, []fault{none, lostResponse}, "sent", []string{"claim create", "job-2 create"}},
		"the outcome is repeated":        {false, []fault{none, repeated}, "sent", []string{"claim create", "job-2 create"}},
		"the outcome arrives late":       {false, []fault{none, late}, "sent", []string{"claim create", "job-2 create"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				j, c := w.open("2")
				c.isLocal, c.fault = row.isLocal, times("put", row.puts...)
				want(t, "result", request(t, j, create("n", "x"), "job-2"), row.want)
				j.process.Drain(t.Context())
				time.Sleep(2 * c.delay) // a late claim must not undo what was put back
				w.wrote(t, row.wrote...)
			})
		})
	}
}

// A response, or a conflict, that nothing confirms leaves a claim that may be the call's own, which it takes back.
func TestCall_lostTwice(t *testing.T) {
	for _, f := range []fault{lostResponse, repeated} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			j, c := w.open("1")
			puts, gets := times("put", f), times("get", lostRequest)
			c.fault = func(op string) fault { return max(puts(op), gets(op)) }
			want(t, "result", request(t, j, create("n", "x"), "job-1"), "failed")
			w.wrote(t, "claim create", "free")
		})
	}
}

// What was there is put back: a request without an effect must not cost the name its job. (S05)
func TestWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.accepted(t, "1", "n")
		j, c := w.open("2")
		call := claim(t, j, message("n", "job-n", "y"))
		call.Withdrawn()
		want(t, "accesses", c.took(), "get put put")
		w.wrote(t, "job-n create, claim message", "job-n create")

		// 429: the same call sends again, also while the store does not take what is put back.
		var isDown atomic.Bool
		c.fault = func(string) fault { return map[bool]fault{true: lostRequest}[isDown.Load()] }
		if err := errors.Join(call.Claim(), call.BeforeBody()); err != nil {
			t.Fatal(err)
		}
		isDown.Store(true)
		call.Withdrawn()
		if call.Problem() == nil {
			t.Error("no problem")
		}
		time.Sleep(5 * time.Second)
		if err := call.Claim(); err == nil {
			t.Error("sent without a claim")
		}
		isDown.Store(false)
		if err := errors.Join(call.Claim(), call.BeforeBody()); err != nil {
			t.Fatal(err)
		}
		call.Accepted("job-n")
		if err := call.Problem(); err != nil {
			t.Error(err)
		}
		j.process.Drain(t.Context())
		time.Sleep(2 * time.Minute)
		w.wrote(t, "job-n create, claim message", "job-n create, claim message", "job-n message")
	})
}

// Another run has taken the claim for over: the call neither sends nor changes anything any more.
func TestCall_lostToAnother(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, c *Call){
		"a mark": func(t *testing.T, c *Call) {
			if err := c.BeforeBody(); !errors.Is(err, ErrTaken) {
				t.Error(err)
			}
			c.Withdrawn()
		},
		"a second attempt": func(t *testing.T, c *Call) { // 429 arrived late
			c.Withdrawn()
			if err := c.Claim(); !errors.Is(err, ErrTaken) {
				t.Error(err)
			}
			if verdict, r, err := c.Look(t.Context()); verdict != Adopt || r.JobID != "job-3" || err != nil {
				t.Errorf("%s, %+v, %v", verdicts[verdict], r, err)
			}
		},
		"an outcome": func(t *testing.T, c *Call) {
			c.Accepted("job-2")
			if !errors.Is(c.Problem(), ErrTaken) {
				t.Errorf("%v", c.Problem())
			}
		},
		"an outcome that the store did not take at first": func(t *testing.T, c *Call) {
			ops, _ := c.journal.store.(*client)
			ops.fault = times("put", lostRequest)
			c.Accepted("job-2")
			time.Sleep(time.Minute)
			if !errors.Is(c.Problem(), ErrTaken) {
				t.Errorf("%v", c.Problem())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				j, c := w.open("2")
				c.isLocal = name == "a mark"
				call := j.Begin(t.Context(), create("n", "x"))
				if err := call.Claim(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				third, _ := w.open("3", call.written.Claim.ID)
				want(t, "another run", request(t, third, create("n", "x"), "job-3"), "sent")
				w.history = nil
				end(t, call)
				w.wrote(t)
				j.process.Drain(t.Context())
			})
		})
	}
}

// No POST begins when another run may soon take its claim for over. (The process slept, for example.)
func TestSent_late(t *testing.T) {
	for _, isLocal := range []bool{true, false} {
		for after, want := range map[time.Duration]error{40 * time.Second: nil, 41 * time.Second: errLate} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				j, c := w.open("1")
				c.isLocal = isLocal
				call := j.Begin(t.Context(), create("n", "x"))
				if err := call.Claim(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(after)
				if err := call.BeforeBody(); !errors.Is(err, want) {
					t.Errorf("after %v: %v", after, err)
				}
				call.Withdrawn()
			})
		}
	}
}

// An outcome that the store does not take is offered again in the background, also after Ctrl-C. Until it is stored, the process does not
// end, and another run waits. (C7.)
func TestCall_outcomeIsRetried(t *testing.T) {
	for outcome, wanted := range map[string]string{"accepted": "job-1 create", "unknown": "create?", "withdrawn": "free"} {
		t.Run(outcome, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				j, c := w.open("1")
				ctx, cancel := context.WithCancel(t.Context())
				call := claim(t, j, create("n", "x"))
				call.ctx = ctx
				cancel()
				c.fault = times("put", lostRequest, hangs, lostRequest)
				switch outcome {
				case "accepted":
					call.Accepted("job-1")
				case "unknown":
					call.Unknown()
				case "withdrawn":
					call.Withdrawn()
				}
				if got := call.Problem(); !errors.Is(got, errFault) {
					t.Errorf("problem: %v", got)
				}
				want(t, "not stored", w.record("n"), "claim create")
				began := time.Now()
				j.process.Drain(t.Context())
				if waited := time.Since(began); waited < 15*time.Second || waited > 20*time.Second {
					t.Errorf("held for %v", waited)
				}
				want(t, "stored", w.record("n"), wanted)
				synctest.Wait()
				if err := call.Problem(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// After an hour, a process need not wait for its store any more.
func TestCall_outcomeIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, c := newWorld().open("1")
		call := claim(t, j, create("n", "x"))
		c.fault = func(string) fault { return lostRequest }
		call.Accepted("job-1")
		for _, isHeld := range []bool{true, false} {
			time.Sleep(retryLimit - time.Minute)
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			if j.process.Drain(short); isHeld != (short.Err() != nil) || call.Problem() == nil {
				t.Errorf("held: %t, %v", !isHeld, call.Problem())
			}
			cancel()
		}
	})
}

// What the CLI cancels while it is being recorded is not sent, and no later run waits for it.
func TestSending_cancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		j, c := w.open("1")
		ctx, cancel := context.WithCancel(t.Context())
		call := j.Begin(ctx, create("n", "x"))
		c.fault = func(string) fault { cancel(); return none }
		if err := call.Claim(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		j.process.Drain(t.Context())
		w.wrote(t, "free")
	})
}

func TestAssign(t *testing.T) {
	for before, do := range map[string]func(j *Journal){
		"nothing":           func(*Journal) {},
		"an unknown create": func(j *Journal) { claim(t, j, create("n", "x")).Unknown() },
		"another job":       func(j *Journal) { request(t, j, create("n", "x"), "job-1") },
	} {
		w := newWorld()
		first, _ := w.open("1")
		do(first)
		j, c := w.open("2")
		if err := j.Begin(t.Context(), message("n", "J", "y")).Assign(t.Context()); err != nil {
			t.Fatal(before, err)
		}
		want(t, "accesses", c.took(), "get put")
		want(t, before, w.record("n"), "J create, adopted")
		want(t, "the prompt again", request(t, j, message("n", "J", "y"), ""), "already sent")
		want(t, "a lost state", request(t, first, create("n", "y"), ""), "adopted J")
	}
}

// A record that cannot be read may be about any request: nothing is sent over it. Nor over one that no provider has written: of another
// key, or with what becomes another path, or a command.
//
// Red without: key and hasValidIDs in decode.
func TestDamagedRecord(t *testing.T) {
	texts := []string{"", "{", "[]", `{"format":0}`, `{"format":2,"name":"n"}`}
	const hostile = "x; curl evil.com" // as long as an id
	for _, change := range []func(*Record){
		func(r *Record) { r.Project = "other" },
		func(r *Record) { r.Name = "other" },
		func(r *Record) { r.Name = "N" }, // as readable
		func(r *Record) { r.JobID = hostile },
		func(r *Record) { r.Last.ID = hostile },
		func(r *Record) { r.Last.ID = "" },
		func(r *Record) { r.Last.JobID = hostile },
		func(r *Record) { r.Claim = &Request{ID: hostile} },
		func(r *Record) { r.Claim = &Request{ID: claimID, JobID: hostile} },
	} {
		r := has("J", "x", "")
		r.Format = format
		change(r)
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for _, text := range texts {
		w := newWorld()
		w.kept[key("p", "n")] = store.Text{Body: []byte(text), Version: "damaged"}
		j, _ := w.open("1")
		for _, wanted := range []Wanted{create("n", "x"), message("n", "J", "x")} {
			want(t, text, request(t, j, wanted, "job-1"), "failed")
		}
		if _, _, err := j.Peek(t.Context(), create("n", "x")); err == nil || !strings.Contains(err.Error(), key("p", "n")) {
			t.Errorf("%q: %v", text, err)
		}
		w.wrote(t)
	}
}
