// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// peek is what a plan sees, or "error".
func peek(t *testing.T, j *Journal, name string) string {
	t.Helper()
	r, err := j.Peek(t.Context(), "p", name)
	if err == nil {
		return short(r)
	}
	if _, ok := errors.AsType[*Error](err); !ok || r.Last != nil {
		t.Errorf("%T, %+v", err, r)
	}
	return "error"
}

// A plan lists once, however many resources ask, reads only what is there, and writes nothing. (S02)
func TestPlan_accesses(t *testing.T) {
	w := new(World)
	w.accepted(t, "1", "a", "b")
	j, c := w.open("2")
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := j.Peek(interrupted, "p", "c"); r.Last != nil || err != nil {
		t.Errorf("after Ctrl-C: %+v, %v", r, err)
	}
	var all sync.WaitGroup
	for range 8 {
		for name, wanted := range map[string]string{"a": "job-a create", "b": "job-b create", "c": "free"} {
			all.Go(func() { want(t, name, peek(t, j, name), wanted) })
		}
	}
	all.Wait()
	ops := strings.Fields(c.Took())
	slices.Sort(ops)
	want(t, "accesses", ops, append(slices.Repeat([]string{"get"}, 16), "list"))
	w.wrote(t)
}

// What a plan may not list, it reads, and what it may not read is not known, which is no error and never "none". Anything else that
// a store does is an error, once for all. (S01)
func TestPlan_faults(t *testing.T) {
	for name, row := range map[string]struct {
		list, get Fault
		want, ops string // of a name with a job, and without one
	}{
		"may not list":                   {denied, None, "job-a create, free", "list get get"},
		"may neither list nor read":      {denied, denied, "free, free", "list get get"},
		"may list and not read":          {None, denied, "error, free", "list get"},
		"the listing fails":              {LostRequest, None, "error, error", "list"},
		"a record is lost":               {None, LostRequest, "error, free", "list get"},
		"may not list, a record is lost": {denied, LostRequest, "error, error", "list get get"},
	} {
		t.Run(name, func(t *testing.T) {
			w := new(World)
			w.accepted(t, "1", "a")
			j, c := w.open("2")
			c.Fault = func(op string) Fault { return map[string]Fault{"list": row.list, "get": row.get}[op] }
			want(t, "plan", peek(t, j, "a")+", "+peek(t, j, "c"), row.want)
			want(t, "accesses", c.Took(), row.ops)
		})
	}
}

func TestAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := new(World)
		w.accepted(t, "1", "b", "a")
		alive, _ := w.open("2")
		claim(t, alive, create("c", "x"))
		dead, _ := w.open("3")
		claim(t, dead, create("d", "x"))
		w.End("3")
		j, c := w.open("4")
		j.Forget = []string{""} // no request
		all, err := j.All(t.Context())
		var got []string
		for _, r := range all {
			got = append(got, r.Name+": "+short(r))
		}
		want(t, "all", got, []string{"a: job-a create", "b: job-b create", "c: claim create", "d: create?"})
		if err != nil {
			t.Error(err)
		}
		w.put(t, "b", "{")
		if all, err := j.All(t.Context()); len(all) != 3 || err == nil || j.IsGivenUp("") {
			t.Errorf("beside a damaged record: %v, %v", all, err)
		}
		c.Fault = times("get", None, LostRequest)
		if _, err := j.All(t.Context()); !errors.Is(err, errFault) {
			t.Error(err)
		}
	})
}

func TestLastRequest(t *testing.T) {
	w := new(World)
	w.write(t, has("J", released))
	j, _ := w.open("me")
	for of, id := range map[[2]string]string{{"n", "J"}: lastID, {"n", "K"}: "", {"m", "J"}: ""} {
		if got, err := j.LastRequest(t.Context(), "p", of[0], of[1]); got != id || err != nil {
			t.Errorf("%v: %q, %v", of, got, err)
		}
	}
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

func TestHash(t *testing.T) {
	seen := map[string]bool{}
	for _, parts := range [][]string{nil, {""}, {"", ""}, {"a", "bc"}, {"ab", "c"}, {"abc"}, {"a", "", "bc"}} {
		hash := Hash(parts...)
		if store.CheckKey(hash) != nil || len(hash) != 20 || seen[hash] {
			t.Errorf("%q: %s", parts, hash)
		}
		seen[hash] = true
	}
}
