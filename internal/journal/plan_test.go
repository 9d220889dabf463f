// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/place"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// peek is what a plan sees: VERDICT JOB, or an error.
func peek(t *testing.T, j *Journal, w Wanted) string {
	t.Helper()
	verdict, r, err := j.Peek(t.Context(), w)
	switch {
	case err != nil:
		if _, ok := errors.AsType[*Error](err); !ok {
			t.Errorf("%T", err)
		}
		return "error"
	case r == nil:
		return verdicts[verdict]
	}
	return verdicts[verdict] + " " + r.Job
}

// accepted starts the jobs of names, each "job-NAME", one after the other.
func (w *world) accepted(t *testing.T, run string, names ...string) {
	t.Helper()
	for _, name := range names {
		j, _ := w.open(run)
		want(t, "created", request(t, j, create(name, "x"), "job-"+name), "sent")
	}
	w.history = nil
}

// A plan lists once, however many resources ask, and reads what a name has once.
func TestPlan_accesses(t *testing.T) {
	w := newWorld()
	w.accepted(t, "1", "a", "b")
	j, c := w.open("2")
	var all sync.WaitGroup
	for range 8 {
		for name, wanted := range map[string]string{"a": "adopt job-a", "b": "adopt job-b", "c": "send"} {
			all.Go(func() { want(t, name, peek(t, j, create(name, "x")), wanted) })
		}
	}
	all.Wait()
	ops := strings.Fields(c.took())
	slices.Sort(ops)
	want(t, "accesses", ops, []string{"get", "get", "list"})
	w.wrote(t)
}

// What a plan may not list, it reads, and what it may not read is not known, which is no error and never "none". Anything else that
// a store does is an error, once for all.
func TestPlan_faults(t *testing.T) {
	for name, row := range map[string]struct {
		list, get fault
		want, ops string // of a name with a job, without one, and with one that is kept
	}{
		"may not list":                   {denied, none, "adopt job-a, send, ", "list get get"},
		"may neither list nor read":      {denied, denied, "send, send, ", "list get get"},
		"may list and not read":          {none, denied, "error, send, error", "list get get"},
		"the listing fails":              {lostRequest, none, "error, error, error", "list"},
		"a record is lost":               {none, lostRequest, "error, send, error", "list get get"},
		"may not list, a record is lost": {denied, lostRequest, "error, error, ", "list get get"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.accepted(t, "1", "a", "b")
			j, c := w.open("2")
			c.fault = func(op string) fault { return map[string]fault{"list": row.list, "get": row.get}[op] }
			var last string
			if _, _, err := j.Compare(t.Context(), "p", "b", "job-b", "v"); err != nil {
				last = "error"
			}
			want(t, "plan", strings.Join([]string{peek(t, j, create("a", "x")), peek(t, j, create("c", "x")), last}, ", "), row.want)
			want(t, "accesses", c.took(), row.ops)
			if r := j.Renamed(t.Context(), create("z", "x")); r != nil && row.list != none {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A kept job's record is read only if another run has written it.
func TestCompare(t *testing.T) {
	for name, row := range map[string]struct {
		change func(t *testing.T, w *world)
		want   string // the record that disagrees with the state
		ops    string
		moved  bool // the state should know the new version
	}{
		"unchanged": {func(*testing.T, *world) {}, "", "list", false},
		"missing":   {func(_ *testing.T, w *world) { clear(w.kept) }, "", "list", false},
		"adopted": {func(t *testing.T, w *world) {
			j, _ := w.open("2")
			want(t, "earlier", request(t, j, create("n", "x"), ""), "adopted job-n")
		}, "job-n create, adopted, by 2", "list get", true},
		"a message": {func(t *testing.T, w *world) {
			j, _ := w.open("2")
			want(t, "earlier", request(t, j, message("n", "job-n", "y"), ""), "sent")
		}, "job-n message, by 2", "list get", true},
		"an unknown message": {func(t *testing.T, w *world) {
			j, _ := w.open("2")
			claim(t, j, message("n", "job-n", "y")).Unknown()
		}, "job-n message?, by 2", "list get", true},
		"an unknown create": {func(t *testing.T, w *world) {
			j, _ := w.open("2")
			other := create("n", "x")
			other.Arguments = "2"
			claim(t, j, other)
			w.end("2")
		}, "create?, was job-n, by 2", "list get", false},
		"a pending create": {func(t *testing.T, w *world) {
			j, _ := w.open("2")
			claim(t, j, create("n", "x"))
		}, "", "list get", false},
		"killed before it sent anything": {func(t *testing.T, w *world) {
			j, c := w.open("2")
			c.isLocal = true
			if err := j.Begin(t.Context(), create("n", "x")).Claim(); !errors.Is(err, ErrTaken) {
				t.Error(err)
			}
			call := j.Begin(t.Context(), message("n", "job-n", "y"))
			if _, _, err := call.Look(t.Context()); err != nil {
				t.Error(err)
			}
			if err := call.Claim(); err != nil {
				t.Error(err)
			}
			w.end("2")
		}, "job-n create, by 2", "list get", true},
		"a killed replacement": {func(t *testing.T, w *world) {
			j, _ := w.open("2")
			if err := j.Release(t.Context(), "p", "n", "job-n", ""); err != nil {
				t.Fatal(err)
			}
			want(t, "earlier", request(t, j, create("n", "x"), "job-2"), "sent")
		}, "job-2 create, by 2", "list get", false},
		"released": {func(t *testing.T, w *world) {
			j, _ := w.open("2")
			if err := j.Release(t.Context(), "p", "n", "job-n", ""); err != nil {
				t.Fatal(err)
			}
		}, "job-n create, released, by 2", "list get", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				first, _ := w.open("1")
				call := first.Begin(t.Context(), create("n", "x"))
				if err := call.Claim(); err != nil {
					t.Fatal(err)
				}
				call.Accepted("job-n")
				row.change(t, w)
				j, c := w.open("3")
				r, now, err := j.Compare(t.Context(), "p", "n", "job-n", call.Version())
				var got string
				if r != nil {
					got = short(r)
				}
				want(t, "kept", got, row.want)
				want(t, "accesses", c.took(), row.ops)
				if isMoved := now != call.Version(); isMoved != row.moved || j.IsElsewhere(now) || err != nil {
					t.Errorf("version %s, %v", now, err)
				}
				if !row.moved {
					return
				}
				if r, again, err := j.Compare(t.Context(), "p", "n", "job-n", now); r != nil || again != now || err != nil {
					t.Errorf("%+v, %s, %v", r, again, err)
				}
				want(t, "accesses", c.took(), "")
			})
		})
	}
}

// A plan frees a name only over a record of the very job, and an earlier plan that was not applied is taken back likewise.
func TestRelease_inPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.accepted(t, "1", "n")
		plan, c := w.open("2")
		want(t, "before", peek(t, plan, create("n", "x")), "adopt job-n")
		for _, step := range []struct {
			job      string
			isRetake bool
			then     string
			wrote    []string
		}{
			{"job-0", false, "adopt job-n", nil},
			{"job-n", true, "adopt job-n", nil},
			{"job-n", false, "send job-n", []string{"job-n create, released, by 2"}},
			{"job-n", false, "send job-n", nil},
			{"job-0", true, "send job-n", nil},
			{"job-n", true, "twin job-n", []string{"job-n create, by 2"}}, // as of this run
		} {
			if step.isRetake {
				if err := plan.Retake(t.Context(), "p", "n", step.job, ""); err != nil {
					t.Error(err)
				}
			} else if err := plan.Release(t.Context(), "p", "n", step.job, ""); err != nil {
				t.Error(err)
			}
			want(t, "then", peek(t, plan, create("n", "x")), step.then)
			w.wrote(t, step.wrote...)
		}
		c.fault = func(op string) fault { return map[string]fault{"put": denied}[op] }
		if err := plan.Release(t.Context(), "p", "n", "job-n", ""); !errors.Is(err, store.ErrDenied) {
			t.Error(err)
		}

		// Neither over what another run sends, nor over an unknown create.
		other, _ := w.open("3")
		call := claim(t, other, create("n", "y"))
		for range 2 {
			later, _ := w.open("4")
			if err := later.Release(t.Context(), "p", "n", "job-n", ""); err != nil {
				t.Error(err)
			}
			call.Unknown()
		}
		want(t, "kept", w.record("n"), "create?, by 3") // a state had the job
	})
}

// A plan looks for a name that was changed after a broken run, among the newest names that no resource has so far. (C20.)
func TestRenamed(t *testing.T) {
	other := create("new", "x")
	other.Arguments = "2"
	elsewhere := create("new", "x")
	elsewhere.Project = "q"
	for name, row := range map[string]struct {
		change func(t *testing.T, w *world, j *Journal)
		wanted Wanted
		want   string
	}{
		"the same request":           {nil, create("new", "x"), "old"},
		"another prompt":             {nil, create("new", "y"), ""},
		"other triggers":             {nil, other, ""},
		"another project":            {nil, elsewhere, ""},
		"its name has a resource":    {func(_ *testing.T, _ *world, j *Journal) { j.HasName("p", "old") }, create("new", "x"), ""},
		"the state has its job":      {func(_ *testing.T, _ *world, j *Journal) { j.InState("job-old") }, create("new", "x"), ""},
		"released":                   {func(t *testing.T, _ *world, j *Journal) { _ = j.Release(t.Context(), "p", "old", "job-old", "") }, create("new", "x"), ""},
		"its project's name has one": {func(_ *testing.T, _ *world, j *Journal) { j.HasName("q", "old") }, create("new", "x"), "old"},
		"the newest of them":         {func(t *testing.T, w *world, _ *Journal) { w.accepted(t, "1", "older") }, create("new", "x"), "older"},
		"another resource of the run": {func(t *testing.T, w *world, j *Journal) {
			w.accepted(t, "2", "mine")
			j.HasName("p", "old")
		}, create("new", "x"), ""},
		"a person has given it up": {func(_ *testing.T, w *world, j *Journal) { j.Forget = w.lastID("old") }, create("new", "x"), ""},
		"it is being sent":         {func(t *testing.T, w *world, _ *Journal) { sending(t, w, "old") }, create("new", "x"), "old"},
		"only the newest are read": {func(t *testing.T, w *world, _ *Journal) { w.fill(t, maxStrays) }, create("new", "x"), ""},
		"all but one are read":     {func(t *testing.T, w *world, _ *Journal) { w.fill(t, maxStrays-1) }, create("new", "x"), "old"},
		"resources' names do not count": {func(t *testing.T, w *world, j *Journal) {
			w.fill(t, maxStrays)
			j.HasName("p", "filler-0")
		}, create("new", "x"), "old"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.accepted(t, "1", "old")
				time.Sleep(time.Second)
				j, c := w.open("2")
				if row.change != nil {
					row.change(t, w, j)
				}
				c.took()
				r := j.Renamed(t.Context(), row.wanted)
				want(t, "renamed", cmp.Or(r, new(Record)).Name, row.want)
				if n := strings.Count(c.took(), "get"); n > maxStrays {
					t.Errorf("%d reads", n)
				}
			})
		})
	}
}

// sending is another run that sends a message.
func sending(t *testing.T, w *world, name string) {
	t.Helper()
	j, _ := w.open("9")
	claim(t, j, message(name, "job-"+name, "x"))
}

// fill adds names with other prompts.
func (w *world) fill(t *testing.T, n int) {
	t.Helper()
	j, _ := w.open("8")
	for i := range n {
		want(t, "filler", request(t, j, create(fmt.Sprint("filler-", i), "filler"), fmt.Sprint("job-", i)), "sent")
	}
}

// lastID is the id of the last request for a name.
func (w *world) lastID(name string) []string {
	r, err := decode(w.kept[key("p", name)].text, key("p", name))
	if err != nil {
		panic(err)
	}
	return []string{r.Last.ID}
}

// What a run left where the journal was before must stop the create of that name, and nothing else. (C21.)
func TestFindElsewhere(t *testing.T) {
	for name, row := range map[string]struct {
		before func(t *testing.T, old *Journal)
		inState,
		forget string
		want string
	}{
		"nothing":            {func(*testing.T, *Journal) {}, "", "", ""},
		"a job":              {func(t *testing.T, old *Journal) { request(t, old, create("n", "x"), "job-1") }, "", "", "job-1 create, by old"},
		"… of the state":     {func(t *testing.T, old *Journal) { request(t, old, create("n", "x"), "job-1") }, "job-1", "", ""},
		"… that is given up": {func(t *testing.T, old *Journal) { request(t, old, create("n", "x"), "job-1") }, "", "last", ""},
		"another name":       {func(t *testing.T, old *Journal) { request(t, old, create("m", "x"), "job-1") }, "", "", ""},
		"released": {func(t *testing.T, old *Journal) {
			request(t, old, create("n", "x"), "job-1")
			if err := old.Release(t.Context(), "p", "n", "job-1", ""); err != nil {
				t.Error(err)
			}
		}, "", "", ""},
		"an unknown create": {func(t *testing.T, old *Journal) { claim(t, old, create("n", "x")).Unknown() }, "", "", "create?, by old"},
		"a killed create":   {func(t *testing.T, old *Journal) { claim(t, old, create("n", "x")) }, "", "", "create?, by old"},
		"… that had sent nothing": {func(t *testing.T, old *Journal) {
			if err := old.Begin(t.Context(), create("n", "x")).Claim(); err != nil {
				t.Error(err)
			}
		}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.end("old")
			folder := t.TempDir()
			here := Place{place.Location{Folder: folder}, "scope"}
			old := Open(&cli.Process{Run: "old", Self: cli.ProcessID{Start: "old"}, Ended: w.hasEnded}, Options{Place: here, RequestTimeout: time.Second})
			row.before(t, old)
			j, c := w.open("2")
			j.Elsewhere = []Place{{place.Location{Folder: folder}, "other scope"}, {place.Location{Folder: folder + "/missing"}, "scope"}, here}
			j.InState(row.inState)
			if row.forget != "" {
				r, _, err := old.get(t.Context(), "p", "n")
				if err != nil {
					t.Fatal(err)
				}
				j.Forget = []string{r.Last.ID}
			}
			for range 2 {
				got := ""
				r, err := j.FindElsewhere(t.Context(), "p", "n", false)
				if err != nil {
					t.Error(err)
				}
				if r != nil {
					got = short(r.Record)
				}
				want(t, "left", got, row.want)
			}
			want(t, "accesses here", c.took(), "")
		})
	}
}

func TestAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.accepted(t, "1", "b", "a")
		alive, _ := w.open("2")
		claim(t, alive, create("c", "x"))
		dead, _ := w.open("3")
		claim(t, dead, create("d", "x"))
		w.end("3")
		j, c := w.open("4")
		all, err := j.All(t.Context())
		var got []string
		for _, r := range all {
			got = append(got, r.Name+": "+short(r))
		}
		want(t, "all", got, []string{"a: job-a create, by 1", "b: job-b create, by 1", "c: claim create, by 2", "d: create?, by 3"})
		if err != nil {
			t.Error(err)
		}
		c.fault = times("get", none, lostRequest)
		if _, err := j.All(t.Context()); !errors.Is(err, errFault) {
			t.Error(err)
		}
	})
}

// The state knows where its journal is, so that a run that has another one can say so.
func TestIsElsewhere(t *testing.T) {
	at := func(l place.Location, scope string) *Journal {
		return over(&client{}, new(cli.Process), Options{Place: Place{l, scope}})
	}
	folder := at(place.Location{Folder: "/a", Default: true}, "scope")
	version := folder.placed("5")
	for name, row := range map[string]struct {
		j    *Journal
		want bool
	}{
		"here":                    {folder, false},
		"on another machine":      {at(place.Location{Folder: "/b", Default: true}, "scope"), false},
		"in a folder with a name": {at(place.Location{Folder: "/a"}, "scope"), true},
		"of another scope":        {at(place.Location{Folder: "/a", Default: true}, "other"), true},
	} {
		if got := row.j.IsElsewhere(version); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if folder.IsElsewhere("") || folder.placed("") != "" {
		t.Error("a state without a version has no journal elsewhere")
	}
}

// Names differ, however they are spelled, and stay readable.
func TestKey(t *testing.T) {
	keys := map[string]string{}
	for _, name := range []string{"a", "A", "a-", "a b", "ä", "../../etc", "日本", strings.Repeat("a", 300), strings.Repeat("a", 301), ""} {
		k := key("p", name)
		if keys[k] != "" || !validKey.MatchString(k) || key("q", name) == k {
			t.Errorf("%q: %s, as of %q", name, k, keys[k])
		}
		keys[k] = name + " "
	}
	if k := key("p", "Release Notes/7"); !strings.HasPrefix(k, "release-notes-7-") {
		t.Error(k)
	}
}
