// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

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
	return verdicts[verdict] + " " + r.JobID
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

// A plan lists once, however many resources ask, reads only what is there, and writes nothing. (S02)
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
	want(t, "accesses", ops, append(slices.Repeat([]string{"get"}, 16), "list"))
	w.wrote(t)
}

// What a plan may not list, it reads, and what it may not read is not known, which is no error and never "none". Anything else that
// a store does is an error, once for all. (S01)
func TestPlan_faults(t *testing.T) {
	for name, row := range map[string]struct {
		list, get fault
		want, ops string // of a name with a job, and without one
	}{
		"may not list":                   {denied, none, "adopt job-a, send", "list get get"},
		"may neither list nor read":      {denied, denied, "send, send", "list get get"},
		"may list and not read":          {none, denied, "error, send", "list get"},
		"the listing fails":              {lostRequest, none, "error, error", "list"},
		"a record is lost":               {none, lostRequest, "error, send", "list get"},
		"may not list, a record is lost": {denied, lostRequest, "error, error", "list get get"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.accepted(t, "1", "a")
			j, c := w.open("2")
			c.fault = func(op string) fault { return map[string]fault{"list": row.list, "get": row.get}[op] }
			want(t, "plan", peek(t, j, create("a", "x"))+", "+peek(t, j, create("c", "x")), row.want)
			want(t, "accesses", c.took(), row.ops)
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
		want(t, "all", got, []string{"a: job-a create", "b: job-b create", "c: claim create", "d: create?"})
		if err != nil {
			t.Error(err)
		}
		c.fault = times("get", none, lostRequest)
		if _, err := j.All(t.Context()); !errors.Is(err, errFault) {
			t.Error(err)
		}
	})
}

// Names differ, however they are spelled, and stay readable.
func TestKey(t *testing.T) {
	keys := map[string]string{}
	for _, name := range []string{"a", "A", "a-", "a b", "ä", "../../etc", "日本", strings.Repeat("a", 300), strings.Repeat("a", 301), ""} {
		k := key("p", name)
		if keys[k] != "" || store.CheckKey(k) != nil || key("q", name) == k {
			t.Errorf("%q: %s, as of %q", name, k, keys[k])
		}
		keys[k] = name + " "
	}
	if k := key("p", "Release Notes/7"); !strings.HasPrefix(k, "release-notes-7-") {
		t.Error(k)
	}
}
