// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// object is that of records with the job J and the prompt x, as a state knows it.
var object = Object{Project: "p", Name: "n", JobID: "J", PromptHash: PromptHash("J", "x"), Holder: "own"}

var fates = map[string]Fate{"release": Release, "leave": Leave, "keep": Keep}

// What each way to remove an object makes of the record, and what is written. After Ctrl-C, it is the same: nothing is waited for.
func TestDelete_N23(t *testing.T) {
	const unchanged = ""
	tainted := func(o *Object) { o.Holder = "" }
	withoutHash := func(o *Object) { o.PromptHash = "" }
	for name, row := range map[string]struct {
		record *Record
		object func(*Object)
		after  string
		wanted bool
	}{
		"release":                         {has("J"), nil, "J create, released", false},
		"release: adopted by another":     {has("J", theirs), nil, unchanged, true},
		"release: tainted":                {has("J", theirs), tainted, "J create, released, of theirs", false},
		"release: released":               {has("J", released), nil, "J create, released", false},
		"release: another job":            {has("K"), nil, unchanged, false},
		"release: an unknown create":      {has("", unknown), nil, unchanged, false},
		"release: a lost record":          {nil, nil, unchanged, false},
		"release: a killed message":       {has("J", claimed("dead", "J")), nil, "J message?, released", false},
		"release: a killed create":        {has("J", claimed("dead", "")), nil, unchanged, false},
		"release: a message, not sent":    {has("J", claimed("dead", "J", unsent)), nil, "J create, released", false},
		"leave":                           {has("J"), nil, "J create, released, left by me", false},
		"leave: released":                 {has("J", released), nil, "J create, released, left by me", false},
		"leave: adopted by another":       {has("J", theirs), nil, unchanged, true},
		"leave: … and released":           {has("J", theirs, released), nil, "J create, released, left by me, of theirs", false},
		"leave: tainted":                  {has("J", theirs), tainted, "J create, released, left by me, of theirs", false},
		"leave: another job":              {has("K"), nil, unchanged, false},
		"leave: another job, left":        {has("K", released, left("me")), nil, unchanged, false},
		"leave: another job, released":    {has("K", released), nil, "J create, released, left by me", false},
		"leave: a lost record":            {nil, nil, "J create, released, left by me", false},
		"leave: lost, prompt not known":   {nil, withoutHash, unchanged, false},
		"keep":                            {has("J"), nil, "J create, left by me", false},
		"keep: released":                  {has("J", released), nil, "J create, left by me", false},
		"keep: adopted by another":        {has("J", theirs), tainted, "J create, left by me, of theirs", false},
		"keep: a killed message":          {has("J", claimed("dead", "J")), nil, "J message?, left by me", false},
		"keep: another job":               {has("K"), nil, unchanged, false},
		"keep: another job, released":     {has("K", released), nil, "J create, left by me", false},
		"keep: an unknown create":         {has("", unknown), nil, unchanged, false},
		"keep: a lost record":             {nil, nil, "J create, left by me", false},
		"keep: lost, prompt not known":    {nil, withoutHash, unchanged, false},
		"keep: of an object with no name": {nil, func(o *Object) { o.Name = "" }, unchanged, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, o := new(World), object
			w.End("dead")
			w.write(t, row.record)
			if row.object != nil {
				row.object(&o)
			}
			interrupted, cancel := context.WithCancel(t.Context())
			cancel()
			before := w.record(t)
			do, _, _ := strings.Cut(name, ":")
			for range 2 {
				j, c := w.open("me")
				isKept := do == "keep" && strings.HasPrefix(row.after, "J ")
				if isInUse, err := j.Remove(interrupted, o, fates[do]); isInUse != (row.wanted || isKept) || err != nil {
					t.Errorf("wanted: %t, %v", isInUse, err)
				}
				if row.after == unchanged {
					want(t, "accesses", c.Took(), map[bool]string{true: "get"}[o.Name != ""])
				}
				want(t, "record", w.record(t), cmp.Or(row.after, before))
				r, err := j.Peek(t.Context(), "p", "n")
				if err != nil || r.Last != nil && !r.HasPrompt("x") || r.JobID == "J" && len(r.Holder) == idLength {
					t.Errorf("another prompt or holder: %+v, %v", r, err)
				}
			}
		})
	}
}

// A Delete waits for another run's request, and then decides by its outcome. Ctrl-C ends that wait, and nothing is written.
func TestDelete_waits(t *testing.T) {
	for do, after := range map[string]string{
		"release": "J message, released", "leave": "J message, released, left by me", "keep": "J message, left by me",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := new(World)
			w.accepted(t, "1", "n")
			o := Object{Project: "p", Name: "n", JobID: "job-n"} // tainted
			other, _ := w.open("1")
			call := claim(t, other, message("n", "job-n", "y"))
			w.history = nil

			j, _ := w.open("me")
			interrupted, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			if _, err := j.Remove(interrupted, o, fates[do]); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			w.wrote(t)
			began := time.Now()
			time.AfterFunc(4900*time.Millisecond, func() { call.Accepted("job-n") })
			if _, err := j.Remove(t.Context(), o, fates[do]); err != nil {
				t.Error(err)
			}
			if waited := time.Since(began); waited != 5*time.Second {
				t.Errorf("waited %v", waited)
			}
			w.wrote(t, "job-n message", strings.Replace(after, "J", "job-n", 1))
		})
	}
}

// A Delete decides again by what another run has written meanwhile.
func TestDelete_adoptedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := new(World)
		w.write(t, has("J"))
		j, c := w.open("me")
		c.Fault = func(op string) Fault {
			if op == "put" {
				c.Fault = nil
				w.write(t, has("J", theirs))
			}
			return None
		}
		if isInUse, err := j.Remove(t.Context(), object, Leave); !isInUse || err != nil {
			t.Errorf("in use: %t, %v", isInUse, err)
		}
		want(t, "record", w.record(t), "J create, of theirs")
	})
}

// Without a journal, and in an action, only the provider configuration knows what it has sent. No id of that could be given up later.
func TestInMemory(t *testing.T) {
	j := InMemory()
	call := claim(t, j, create("n", "x"))
	call.Unknown()
	want(t, "unknown", peek(t, j, "n"), "create?")
	want(t, "by another configuration", peek(t, InMemory(), "n"), "free")
	if call.Record().Last.ID != "" || j.IsDurable() {
		t.Errorf("request %q, kept: %t", call.Record().Last.ID, j.IsDurable())
	}
}
