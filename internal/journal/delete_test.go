// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// object is that of records with the job J and the prompt x, as a state knows it.
var object = Object{Project: "p", Name: "n", JobID: "J", PromptHash: PromptHash("J", "x")}

// deletes are what a Delete can do with the name of its object.
var deletes = map[string]func(*Journal, context.Context, Object) (isWanted bool, err error){
	"release": func(j *Journal, ctx context.Context, o Object) (bool, error) { return j.Free(ctx, o, false) },
	"leave":   func(j *Journal, ctx context.Context, o Object) (bool, error) { return j.Free(ctx, o, true) },
	"keep":    (*Journal).Keep,
}

// write writes a record, whatever is there; nil: none.
func (w *world) write(t *testing.T, r *Record) {
	t.Helper()
	if r == nil {
		return
	}
	r.Format = format
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.put(store.Text{Key: key("p", "n"), Version: w.kept[key("p", "n")].Version}, text); err != nil {
		t.Fatal(err)
	}
	w.history = nil
}

// creates are what the creates of a run find: the verdict for each RUN PROMPT.
func (w *world) creates(t *testing.T, wanted map[string]string) {
	t.Helper()
	for by, verdict := range wanted {
		run, prompt, _ := strings.Cut(by, " ")
		j, _ := w.open(run)
		got, _, err := j.Begin(t.Context(), create("n", prompt)).Look(t.Context())
		if want(t, by, verdicts[got], verdict); err != nil {
			t.Error(err)
		}
	}
}

// What each way to remove an object makes of the record, and what creates then find. After Ctrl-C, it is the same: nothing is waited for.
func TestDelete_N23(t *testing.T) {
	const unchanged = ""
	type looks = map[string]string
	theirs := func(r *Record) { r.Holder = "theirs" }
	tainted := func(o *Object) { o.IsTainted = true }
	withoutHash := func(o *Object) { o.PromptHash = "" }
	own := func(o *Object) { o.Holder = "own" }
	for name, row := range map[string]struct {
		record *Record
		object func(*Object)
		after  string
		wanted bool
		looks  looks
	}{
		"release":                         {has("J", "x", ""), nil, "J create, released", false, looks{"me x": "send", "other x": "send"}},
		"release: adopted":                {has("J", "x", "", adopted), own, "J create, released, adopted", false, looks{"me x": "send"}},
		"release: adopted by another":     {has("J", "x", "", theirs), own, unchanged, true, looks{"me x": "adopt"}},
		"release: tainted":                {has("J", "x", "", theirs), tainted, "J create, released, adopted", false, looks{"me x": "send"}},
		"release: released":               {has("J", "x", "", released), nil, unchanged, false, nil},
		"release: another job":            {has("K", "x", ""), nil, unchanged, false, looks{"me x": "adopt"}},
		"release: an unknown create":      {has("", "x", "", unknown), nil, unchanged, false, looks{"me x": "unknown"}},
		"release: a lost record":          {nil, nil, unchanged, false, nil},
		"release: a killed message":       {has("J", "y", "", claimed("dead", "J", "x")), nil, "J message?, released", false, looks{"me x": "send"}},
		"release: a killed create":        {has("J", "y", "", claimed("dead", "", "x")), nil, unchanged, false, looks{"me x": "unknown"}},
		"release: a message, not sent":    {has("J", "y", "", claimed("dead", "J", "x", unsent)), nil, "J create, released", false, nil},
		"leave":                           {has("J", "x", ""), nil, "J create, released, left by me", false, looks{"me x": "adopt", "me y": "beside", "other x": "send"}},
		"leave: released":                 {has("J", "x", "", released), nil, "J create, released, left by me", false, looks{"me x": "adopt"}},
		"leave: adopted by another":       {has("J", "x", "", theirs), own, unchanged, true, looks{"me x": "adopt", "other x": "adopt"}},
		"leave: tainted":                  {has("J", "x", "", theirs), tainted, "J create, released, left by me, adopted", false, looks{"me x": "adopt"}},
		"leave: another job":              {has("K", "x", ""), nil, unchanged, false, nil},
		"leave: another job, left":        {has("K", "x", "", released, left("me")), nil, unchanged, false, looks{"me x": "adopt"}},
		"leave: another job, released":    {has("K", "y", "", released), nil, unchanged, false, looks{"me x": "send"}},
		"leave: a lost record":            {nil, own, "J create, released, left by me, adopted", false, looks{"me x": "adopt", "me y": "beside", "other x": "send"}},
		"leave: lost, prompt not known":   {nil, withoutHash, unchanged, false, nil},
		"keep":                            {has("J", "x", ""), nil, "J create, left by me", false, looks{"me x": "adopt", "me y": "beside", "other x": "adopt", "other y": "beside"}},
		"keep: released":                  {has("J", "x", "", released), nil, "J create, left by me", false, looks{"other x": "adopt"}},
		"keep: adopted by another":        {has("J", "x", "", theirs), tainted, "J create, left by me, adopted", false, looks{"me x": "adopt"}},
		"keep: a killed message":          {has("J", "y", "", claimed("dead", "J", "x")), nil, "J message?, left by me", false, looks{"me x": "adopt"}},
		"keep: another job":               {has("K", "y", ""), nil, unchanged, false, looks{"me x": "beside"}},
		"keep: another job, released":     {has("K", "y", "", released), nil, "J create, left by me", false, looks{"me x": "adopt"}},
		"keep: an unknown create":         {has("", "y", "", unknown), nil, unchanged, false, looks{"me x": "unknown"}},
		"keep: a lost record":             {nil, own, "J create, left by me, adopted", false, looks{"me x": "adopt", "me y": "beside", "other x": "adopt"}},
		"keep: lost, prompt not known":    {nil, withoutHash, unchanged, false, looks{"me x": "send"}},
		"keep: of an object with no name": {nil, func(o *Object) { o.Name = "" }, unchanged, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w, o := newWorld(), object
			w.end("dead")
			w.write(t, row.record)
			if row.object != nil {
				row.object(&o)
			}
			interrupted, cancel := context.WithCancel(t.Context())
			cancel()
			before := w.record("n")
			do, _, _ := strings.Cut(name, ":")
			for range 2 {
				j, c := w.open("me")
				isKept := do == "keep" && strings.HasPrefix(row.after, "J ")
				if isWanted, err := deletes[do](j, interrupted, o); isWanted != (row.wanted || isKept) || err != nil {
					t.Errorf("wanted: %t, %v", isWanted, err)
				}
				want(t, "record", w.record("n"), cmp.Or(row.after, before))
				if row.after == unchanged {
					want(t, "accesses", c.took(), map[bool]string{true: "get"}[o.Name != ""])
				}
			}
			w.creates(t, row.looks)
		})
	}
}

// A Delete waits for another run's request, and then decides by its outcome. Ctrl-C ends that wait, and nothing is written.
func TestDelete_waits(t *testing.T) {
	message := claimed("alive", "J", "y")
	accept := func(job string) func(*Call) { return func(c *Call) { c.Accepted(job) } }
	for name, row := range map[string]struct {
		record *Record
		end    func(*Call) // after five seconds; nil: the deadline
		want   map[string]string
	}{
		"an accepted message": {has("J", "x", "", message), accept("J"), map[string]string{
			"release": "J message, released", "leave": "J message, released, left by me", "keep": "J message, left by me",
		}},
		"a message that had no effect": {has("J", "x", "", message), (*Call).Withdrawn, map[string]string{
			"release": "J create, released", "leave": "J create, released, left by me", "keep": "J create, left by me",
		}},
		"a message without a response": {has("J", "x", "", message), nil, map[string]string{
			"release": "J message?, released", "leave": "J message?, released, left by me", "keep": "J message?, left by me",
		}},
		"an accepted create": {has("J", "x", "", claimed("alive", "", "x")), accept("K"), map[string]string{
			"release": "K create", "leave": "K create", "keep": "K create",
		}},
		"a create without a response": {has("J", "x", "", claimed("alive", "", "x")), nil, map[string]string{
			"release": "J create, claim create", "leave": "J create, claim create", "keep": "J create, claim create",
		}},
		"a create without effect, of a lost record": {has("", "", "", func(r *Record) { r.Last = nil }, claimed("alive", "", "x")), (*Call).Withdrawn, map[string]string{
			"release": "free", "leave": "J create, released, left by me", "keep": "J create, left by me",
		}},
	} {
		for do, after := range row.want {
			t.Run(name+", "+do, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld()
					record := *row.record
					claim := *record.Claim
					claim.SentAt, claim.Deadline = time.Now(), time.Now().Add(time.Minute)
					record.Claim = &claim
					w.write(t, &record)
					before := w.record("n")

					j, _ := w.open("me")
					call, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					defer cancel()
					if _, err := deletes[do](j, call, object); !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
					w.wrote(t)
					want(t, "after Ctrl-C", w.record("n"), before)

					began := time.Now()
					if row.end != nil {
						other, _ := w.open("alive")
						c := other.Begin(t.Context(), Wanted{Project: "p", Name: "n", JobID: claim.JobID})
						over, err := other.getText(t.Context(), key("p", "n"))
						c.text, c.written, c.looked = over, &record, func() *Record { r := record; r.Claim = nil; return &r }()
						time.AfterFunc(5*time.Second, func() { row.end(c) })
						if err != nil {
							t.Fatal(err)
						}
					}
					if isWanted, err := deletes[do](j, t.Context(), object); isWanted != (do == "keep" && strings.Contains(after, "left by me")) || err != nil {
						t.Errorf("wanted: %t, %v", isWanted, err)
					}
					waited, most := time.Since(began), map[bool]time.Duration{true: time.Minute, false: 5 * time.Second}[row.end == nil]
					if waited > most+pollInterval || waited < most-4*time.Second {
						t.Errorf("waited %v", waited)
					}
					want(t, "record", w.record("n"), after)
				})
			})
		}
	}
}

// What goes wrong with the store in a Delete: a conflict that does not show, a repeated write, an adoption by another run meanwhile, and
// no response.
func TestDelete_faults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.write(t, has("J", "x", ""))
		j, c := w.open("me")
		c.fault = times("put", conflicts)
		_, err := j.Free(t.Context(), object, true)
		want(t, "a conflict", c.took(), "get put get put")
		c.fault = times("put", repeated)
		_, err2 := j.Free(t.Context(), object, false)
		want(t, "a repeated write", c.took(), "get put get")
		w.wrote(t, "J create, released, left by me", "J create, released")
		if errors.Join(err, err2) != nil {
			t.Error(err, err2)
		}

		w.write(t, has("J", "x", ""))
		c.fault = func(op string) fault {
			if op == "put" && c.fault != nil {
				c.fault = nil
				w.write(t, has("J", "x", "", adopted))
			}
			return none
		}
		if isWanted, err := j.Free(t.Context(), object, true); !isWanted || err != nil {
			t.Errorf("adopted meanwhile, wanted: %t, %v", isWanted, err)
		}
		want(t, "adopted meanwhile", w.record("n"), "J create, adopted")

		for do, remove := range deletes {
			c.fault = times("get", lostRequest)
			if _, err := remove(j, t.Context(), object); !errors.As(err, new(*Error)) {
				t.Errorf("%s: %v", do, err)
			}
		}
	})
}

// Without a journal, and in an action, only the provider configuration knows what it has sent. No id of that could be given up later.
func TestInMemory(t *testing.T) {
	for range 2 {
		want(t, "an action", request(t, InMemory(), Wanted{Project: "p", Prompt: "x"}, "job-1"), "sent")
	}
	j, other := InMemory(), InMemory()
	want(t, "sent", request(t, j, create("m", "x"), "job-1"), "sent")
	want(t, "again", request(t, j, create("m", "x"), ""), "adopted job-1")
	want(t, "by another configuration", request(t, other, create("m", "x"), "job-2"), "sent")
	for _, do := range []string{"keep", "leave"} {
		if _, err := deletes[do](j, t.Context(), object); err != nil {
			t.Fatal(err)
		}
		want(t, do, peek(t, j, create("n", "x")), "adopt J")
		want(t, do, request(t, j, create("n", "x"), ""), "adopted J")
	}
	if _, err := j.Free(t.Context(), Object{Project: "p", Name: "m", JobID: "job-1"}, false); err != nil {
		t.Fatal(err)
	}
	call, late := claim(t, j, create("m", "x")), j.Begin(t.Context(), create("m", "x"))
	if err := late.Claim(); !errors.Is(err, ErrTaken) {
		t.Errorf("a second claim: %v", err)
	}
	call.Unknown()
	want(t, "unknown", peek(t, j, create("m", "x")), "unknown ")
	if id := call.Written().Last.ID + j.LastRequest(t.Context(), "p", "n", "J"); id != "" || j.Keeps() {
		t.Errorf("request %q, kept: %t", id, j.Keeps())
	}
}
