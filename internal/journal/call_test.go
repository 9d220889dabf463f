// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// What a record says of a claim: what is alive is waited for, what is over may have been sent, and what says that it is unsent was not.
func TestAsOfNow(t *testing.T) {
	const alive, dead = "alive", "dead"
	for _, row := range []struct {
		record *Record
		want   string
	}{
		{has("J"), "J create"},
		{has("", empty, claimed(alive, "")), "claim create"},
		{has("", empty, claimed("me", "")), "claim create"},
		{has("", empty, claimed(alive, "", unsent)), "free"},
		{has("", empty, claimed(alive, "", expired)), "create?"},
		{has("", empty, claimed(dead, "")), "create?"},
		{has("J", theirs, claimed(alive, "", unsent)), "J create, of theirs"},
		{has("J", theirs, claimed(dead, "")), "create?"},
		{has("J", released, claimed(dead, "")), "create?"},
		{has("J", theirs, claimed(dead, "J")), "J message?, of theirs"},
		{has("K", theirs, claimed(dead, "J")), "J message?"},
		{has("", empty, claimed(alive, "J")), "claim message"},
	} {
		w := new(World)
		w.End(dead)
		j, _ := w.open("me")
		before := short(row.record)
		want(t, before, short(j.asOfNow(row.record)), row.want)
		want(t, "the record", short(row.record), before)
		w.write(t, row.record)
		want(t, "a plan sees", peek(t, j, "n"), row.want)
	}
}

// A wait ends with the call, with the deadline, and at the latest after as long as the claim can last, by the own clock.
func TestLook_N06_waits(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*Entry)
		want   string // empty: an error
		after  time.Duration
	}{
		"until the deadline":        {func(*Entry) {}, "create?", 61 * time.Second},
		"X15 its clock is ahead":    {func(r *Entry) { r.SentAt, r.Deadline = r.SentAt.Add(time.Hour), r.Deadline.Add(time.Hour) }, "create?", 61 * time.Second},
		"its clock is behind":       {func(r *Entry) { r.SentAt, r.Deadline = r.SentAt.Add(-time.Hour), r.Deadline.Add(-time.Hour) }, "create?", 0},
		"another claim follows":     {func(*Entry) {}, "create?", 91 * time.Second},
		"X16 the call is cancelled": {func(*Entry) {}, "", 10 * time.Second},
		"the store has vanished":    {func(*Entry) {}, "", opTimeout},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := new(World)
			first, _ := w.open("1")
			r := *claim(t, first, create("n", "x")).record
			row.change(r.Claim)
			w.write(t, &r)

			j, ops := w.open("2")
			ctx := t.Context()
			switch name {
			case "X16 the call is cancelled":
				short, cancel := context.WithTimeout(ctx, row.after)
				defer cancel()
				ctx = short
			case "another claim follows":
				time.AfterFunc(30*time.Second, func() {
					later := r
					claimed("1", "")(&later)
					later.Claim.Deadline = later.Claim.Deadline.Add(time.Second)
					w.write(t, &later)
				})
			case "the store has vanished":
				ops.Fault = times("get", Hangs)
			}
			began := time.Now()
			got, err := j.Begin(ctx, create("n", "x")).Look(ctx)
			if (row.want == "") != (err != nil) || err == nil && short(got) != row.want {
				t.Errorf("%+v, %v", got, err)
			}
			if waited := time.Since(began); waited < row.after || waited > row.after+pollInterval {
				t.Errorf("waited %v", waited)
			}
		})
	}
}

// A store that shows another version in each read is not asked, nor connected to the service for, without a pause and an end.
//
// Red without: taken in Look.
func TestLook_endless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := new(World)
		w.write(t, has("J", released))
		j, ops := w.open("1")
		ops.Fault = func(op string) Fault {
			if op == "put" {
				w.write(t, has("J", released))
			}
			return None
		}
		began, c := time.Now(), j.Begin(t.Context(), create("n", "y"))
		for {
			if _, err := c.Look(t.Context()); err != nil {
				break
			}
			if err := c.Claim(); !errors.Is(err, ErrTaken) {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took == 0 || took > maxConflicts*pollInterval {
			t.Errorf("took %v", took)
		}
	})
}

// However a write fails, or is cancelled, nothing is sent after it, and what was there is put back, so that the next run need not wait; a
// request or response that is lost once, or that a library repeats, does not matter to an outcome. If no read confirms a response or a
// conflict, the claim may be the call's own, which it takes back. (S04)
func TestCall_faults(t *testing.T) {
	sent, twice := []string{"claim create", "job-2 create"}, []string{"claim unsent create", "claim create", "job-2 create"}
	for name, row := range map[string]struct {
		puts    []Fault
		get     Fault // the first
		wrote   []string
		isLocal bool
	}{
		"none":                                 {wrote: sent},
		"none, in a folder":                    {wrote: twice, isLocal: true},
		"no request arrives at first":          {puts: []Fault{LostRequest, LostRequest, LostRequest}, wrote: []string{"free"}},
		"the claim's response is lost":         {puts: []Fault{LostResponse}, wrote: sent},
		"… and that of a read, too":            {puts: []Fault{LostResponse}, get: LostRequest, wrote: []string{"claim create", "free"}},
		"the claim is repeated":                {puts: []Fault{Repeated}, wrote: sent},
		"… and the response of a read is lost": {puts: []Fault{Repeated}, get: LostRequest, wrote: []string{"claim create", "free"}},
		"the claim arrives late":               {puts: []Fault{Late}, wrote: []string{"free"}},
		"a conflict does not show":             {puts: []Fault{conflicts, conflicts}, wrote: sent},
		"the store hangs":                      {puts: []Fault{Hangs}, wrote: []string{"free"}},
		"the CLI cancels while it is recorded": {puts: []Fault{cancels}, wrote: []string{"free"}},
		"the second write does not arrive":     {puts: []Fault{None, LostRequest}, wrote: []string{"claim unsent create", "free"}, isLocal: true},
		// A folder that could not sync what it has written is such a store: a loss of power may still undo the write.
		"the second write's response is lost": {puts: []Fault{None, LostResponse}, wrote: slices.Insert(slices.Clone(twice), 1, "claim create"), isLocal: true},
		"each response is lost": {
			puts:  slices.Repeat([]Fault{LostResponse}, maxConflicts),
			wrote: append(slices.Repeat([]string{"claim unsent create"}, maxConflicts), "free"), isLocal: true,
		},
		"the second write arrives late":  {puts: []Fault{None, Late}, wrote: []string{"claim unsent create", "free"}, isLocal: true},
		"the outcome's response is lost": {puts: []Fault{None, LostResponse}, wrote: sent},
		"the outcome is repeated":        {puts: []Fault{None, Repeated}, wrote: sent},
		"the outcome arrives late":       {puts: []Fault{None, Late}, wrote: sent},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := new(World)
			j, c := w.open("2")
			ctx, cancel := context.WithCancel(t.Context())
			puts, gets := times("put", row.puts...), times("get", row.get)
			c.Local, c.Fault = row.isLocal, func(op string) Fault {
				f := max(puts(op), gets(op))
				if f == cancels {
					cancel()
				}
				return f
			}
			call := j.Begin(ctx, create("n", "x"))
			if err := call.Claim(); err == nil {
				if err = call.BeforeBody(); err == nil {
					call.Accepted("job-2")
				} else {
					call.Withdrawn()
				}
			}
			j.process.Drain(t.Context())
			time.Sleep(2 * c.Delay) // a late claim must not undo what was put back
			w.wrote(t, row.wrote...)
		})
	}
}

// What was there is put back: a request without an effect must not cost the name its job. (S05)
func TestWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := new(World)
		w.accepted(t, "1", "n")
		j, c := w.open("2")
		call := claim(t, j, message("n", "job-n", "y"))
		call.Withdrawn()
		want(t, "accesses", c.Took(), "get put put")
		w.wrote(t, "job-n create, claim message", "job-n create")

		// 429: the same call sends again, also while the store does not take what is put back.
		var isDown atomic.Bool
		c.Fault = func(string) Fault { return map[bool]Fault{true: LostRequest}[isDown.Load()] }
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

// No POST begins when another run may soon take its claim for over. (The process slept, for example.)
func TestBeforeBody_late(t *testing.T) {
	for _, isLocal := range []bool{true, false} {
		for after, want := range map[time.Duration]error{40 * time.Second: nil, 41 * time.Second: errLate} {
			synctest.Test(t, func(t *testing.T) {
				j, c := new(World).open("1")
				c.Local = isLocal
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
// end, and another run waits. After an hour, a process need not wait for its store any more.
func TestCall_outcomeIsRetried(t *testing.T) {
	for outcome, row := range map[string]struct {
		end  func(*Call)
		want string
	}{
		"accepted":  {func(c *Call) { c.Accepted("job-1") }, "job-1 create"},
		"unknown":   {(*Call).Unknown, "create?"},
		"withdrawn": {(*Call).Withdrawn, "free"},
	} {
		inBubble(t, outcome, func(t *testing.T) {
			w := new(World)
			j, c := w.open("1")
			ctx, cancel := context.WithCancel(t.Context())
			call := claim(t, j, create("n", "x"))
			call.ctx = ctx
			cancel()
			c.Fault = times("put", LostRequest, Hangs, LostRequest)
			row.end(call)
			if got := call.Problem(); !errors.Is(got, errFault) {
				t.Errorf("problem: %v", got)
			}
			want(t, "not stored", w.record(t), "claim create")
			began := time.Now()
			j.process.Drain(t.Context())
			if waited := time.Since(began); waited < 15*time.Second || waited > 20*time.Second {
				t.Errorf("held for %v", waited)
			}
			want(t, "stored", w.record(t), row.want)
			synctest.Wait()
			if err := call.Problem(); err != nil {
				t.Error(err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		j, c := new(World).open("1")
		call := claim(t, j, create("n", "x"))
		c.Fault = func(string) Fault { return LostRequest }
		call.Accepted("job-1")
		for _, isHeld := range []bool{true, false} {
			time.Sleep(retryTime - time.Minute)
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			if j.process.Drain(short); isHeld != (short.Err() != nil) || call.Problem() == nil {
				t.Errorf("held: %t, %v", !isHeld, call.Problem())
			}
			cancel()
		}
	})
}

func TestAssign(t *testing.T) {
	for before, record := range map[string]*Record{
		"nothing": nil, "an unknown create": has("", unknown), "another job": has("job-1", theirs), "released": has("J", theirs, released, left("me")),
	} {
		w := new(World)
		w.write(t, record)
		j, c := w.open("me")
		call := j.Begin(t.Context(), message("n", "J", "y"))
		if err := call.Assign(t.Context()); err != nil {
			t.Fatal(before, err)
		}
		want(t, "accesses", c.Took(), "get put")
		want(t, before, w.record(t), "J create")
		if r, err := j.Peek(t.Context(), "p", "n"); !r.HasPrompt("y") || r.Holder != call.Holder() || err != nil {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// A record that cannot be read may be about any request: nothing is sent over it. Nor over one that no provider has written: of another
// key, or with what becomes another path, or a command.
//
// Red without: key and hasValidIDs in decode.
func TestDamagedRecord(t *testing.T) {
	texts := []string{"", "{", "[]"}
	const hostile = "x; curl evil.com" // as long as an id
	for _, change := range []func(*Record){
		func(r *Record) { r.Format++ }, // of a later version
		func(r *Record) { r.Format-- },
		func(r *Record) { r.Project = "other" },
		func(r *Record) { r.Name = "other" },
		func(r *Record) { r.Name = "N" }, // as readable
		func(r *Record) { r.JobID = hostile },
		func(r *Record) { r.Last.ID = hostile },
		func(r *Record) { r.Last.ID = "" },
		func(r *Record) { r.Last.Recipient = hostile },
		func(r *Record) { r.Claim = &Entry{ID: hostile} },
		func(r *Record) { r.Claim = &Entry{ID: claimID, Recipient: hostile} },
	} {
		r := has("J")
		r.Format = format
		change(r)
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for _, text := range texts {
		w := new(World)
		w.put(t, "n", text)
		j, _ := w.open("1")
		call := j.Begin(t.Context(), create("n", "x"))
		if err := call.Claim(); !errors.Is(err, ErrTaken) {
			t.Errorf("%q: %v", text, err)
		}
		_, looks := call.Look(t.Context())
		_, peeks := j.Peek(t.Context(), "p", "n")
		for _, err := range []error{looks, peeks} {
			if err == nil || !strings.Contains(err.Error(), key("p", "n")) {
				t.Errorf("%q: %v", text, err)
			}
		}
		w.wrote(t)
	}
}
