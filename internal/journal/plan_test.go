// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// A plan finds requests as often as it is asked, and changes nothing.
func TestStores_find(t *testing.T) {
	stores(t, func(t *testing.T, l store.Location) {
		lose(t, l, "first", create)
		post(t, l, "first", create, "job-2")
		post(t, l, "first", message, "job-1")
		j := open(t, l, "second")
		for range 2 {
			wantFound(t, j, create, "job-2", "unknown")
		}
		wantFound(t, open(t, l, "first"), create) // never its own
		wantStored(t, l, "create job-2 first", "create pending first", "message job-1 first")
	})
}

// A query finds each create of other runs once, until it is in a state or a person has given it up.
func TestStores_unseen(t *testing.T) {
	stores(t, func(t *testing.T, l store.Location) {
		accepted := post(t, l, "first", create, "job-1").name.ID
		want(t, open(t, l, "second"), create, "taken over job-1")
		post(t, l, "first", message, "job-1")
		id := lose(t, l, "third", otherCreate).name.ID
		for _, test := range []struct {
			run    cli.Run
			forget string
			want   []string
		}{
			{"fourth", "", []string{"job-1", "unknown"}},
			{"fourth", id, []string{"job-1"}},
			{"fourth", accepted, []string{"job-1", "unknown"}},
			{"third", "", []string{"job-1"}},
		} {
			found, err := open(t, l, test.run, test.forget).Unseen(t.Context())
			if diff := cmp.Diff(test.want, outcomes(found)); diff != "" || err != nil {
				t.Errorf("found by %s, forgetting %q: %v (-want +got):\n%s", test.run, test.forget, err, diff)
			}
		}
	})
}

// A create is removed if its job is in a stored state: not if only this run has it there, because it has imported it, or
// because an earlier process of this run has taken it over.
func TestRemoveStored(t *testing.T) {
	for name, test := range map[string]struct {
		before func(t *testing.T, l store.Location, j *Journal)
		stored []string
	}{
		"stored":     {func(_ *testing.T, _ store.Location, j *Journal) { j.InState("job-1") }, []string{"create job-2 first"}},
		"not at all": {func(*testing.T, store.Location, *Journal) {}, []string{"create job-1 first", "create job-2 first"}},
		"imported": {
			func(_ *testing.T, _ store.Location, j *Journal) { j.InState("job-1"); j.Taken("job-1") },
			[]string{"create job-1 first", "create job-2 first"},
		},
		"taken over": {
			func(t *testing.T, l store.Location, j *Journal) {
				want(t, open(t, l, "second"), create, "taken over job-1")
				j.InState("job-1")
			},
			[]string{"create job-1 first", "create job-1 second", "create job-2 first"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := folder(t)
			post(t, l, "first", create, "job-1")
			post(t, l, "first", create, "job-2")
			j := open(t, l, "second")
			test.before(t, l, j)
			found, err := j.Find(t.Context(), create)
			if err = errors.Join(err, j.RemoveStored(t.Context(), create, found)); err != nil {
				t.Error(err)
			}
			j.process.Drain(t.Context())
			wantStored(t, l, test.stored...)
		})
	}
}

// Nothing lists the entries of an object that is gone: a destroy removes them, and not in the background. Of a job that this
// run took over, it removes only what this run has written.
func TestDestroyed(t *testing.T) {
	for name, test := range map[string]struct {
		run    cli.Run
		ref    bool // the private state is known: not that of a tainted object
		stored []string
	}{
		"stored":  {"third", true, nil},
		"tainted": {"third", false, nil},
		"own":     {"second", true, []string{"create job-1 first"}},
	} {
		l := folder(t)
		post(t, l, "first", create, "job-1")
		ref := want(t, open(t, l, "second"), create, "taken over job-1").Ref(Ref{})
		if !test.ref {
			ref = Ref{}
		}
		j := open(t, l, test.run)
		j.InState("job-1")
		if err := j.Destroyed(t.Context(), ref, "job-1"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantStored(t, l, test.stored...)
	}
}

// A plan of many equal resources reads each entry once.
func TestFind_many(t *testing.T) {
	l := folder(t)
	for i := range 20 {
		post(t, l, "first", create, fmt.Sprint("job-", i))
	}
	j, reads := open(t, l, "second"), atomic.Int64{}
	fail(j, func(_ context.Context, op string, access func() error) error {
		if op == "read" {
			reads.Add(1)
		}
		return access()
	})
	for range 20 {
		if found, err := j.Find(t.Context(), create); len(found) != 20 || err != nil {
			t.Error(outcomes(found), err)
		}
	}
	if reads.Load() != 20 {
		t.Errorf("%d reads", reads.Load())
	}
}

// All creates that name a job are found, under whatever prompt, those that have taken it over too (G22).
func TestStartedBy(t *testing.T) {
	l := folder(t)
	post(t, l, "first", otherCreate, "job-1")
	want(t, open(t, l, "second"), otherCreate, "taken over job-1")
	post(t, l, "first", create, "job-2")
	found, err := open(t, l, "third").StartedBy(t.Context(), "job-1")
	if diff := cmp.Diff([]string{"job-1", "job-1"}, outcomes(found)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// A plan and a query say what they cannot read.
func TestPlan_faults(t *testing.T) {
	l := folder(t)
	post(t, l, "first", create, "job-1")
	for name, call := range map[string]func(j *Journal) ([]*Earlier, error){
		"query":  func(j *Journal) ([]*Earlier, error) { return j.Unseen(t.Context()) },
		"plan":   func(j *Journal) ([]*Earlier, error) { return j.Find(t.Context(), create) },
		"import": func(j *Journal) ([]*Earlier, error) { return j.StartedBy(t.Context(), "job-1") },
	} {
		for _, op := range []string{"list", "read"} {
			j := open(t, l, "second")
			failing(j, op, 1, 1)
			if found, err := call(j); !errors.Is(err, errFault) || len(found) > 0 {
				t.Errorf("%s, %s fails: %v, %v", name, op, found, err)
			}
		}
	}
}

// What is not removed stays in the state, and no call of this run finds it. After a failure no
// other resource waits.
func TestPrune_faults(t *testing.T) {
	for _, op := range []string{"list", "remove"} {
		synctest.Test(t, func(t *testing.T) {
			l := folder(t)
			ref := post(t, l, "first", create, "job-1").Ref(Ref{})
			j := open(t, l, "second")
			start := time.Now()
			fail(j, func(ctx context.Context, tried string, access func() error) error {
				if tried != op {
					return access()
				}
				return hang(ctx)
			})
			for range 1000 {
				remaining, err := j.Prune(t.Context(), ref)
				if diff := cmp.Diff(ref, remaining); diff != "" || (err != nil) != (op == "list") {
					t.Fatal(op, err, diff)
				}
			}
			j.process.Drain(t.Context())
			if took := time.Since(start).Round(time.Second); took != opTimeout {
				t.Errorf("%s took %s", op, took)
			}
			want(t, open(t, l, "third"), create, "taken over job-1")
			later := open(t, l, "fourth")
			later.DealtWith(ref.Entries...)
			want(t, later, create, "taken over job-1") // of the third
		})
	}
}

// A plan waits for a removal only if it plans an equal create, whose apply would find the entry: whichever of both comes first.
func TestRemove_waits(t *testing.T) {
	for _, test := range []struct {
		planned             Key
		plannedFirst, waits bool
	}{{create, true, true}, {create, false, true}, {otherCreate, true, false}, {otherCreate, false, false}} {
		synctest.Test(t, func(t *testing.T) {
			l := folder(t)
			name := post(t, l, "first", create, "job-1").name
			j := open(t, l, "second")
			fail(j, func(_ context.Context, _ string, access func() error) error {
				time.Sleep(time.Second)
				return access()
			})
			calls := []func(){
				func() { j.PlansCreate(test.planned) },
				func() { j.Remove(t.Context(), name) },
			}
			if !test.plannedFirst {
				slices.Reverse(calls)
			}
			start := time.Now()
			for _, call := range calls {
				call()
				if unremoved, err := j.Unremoved(t.Context()); len(unremoved) > 0 || err != nil {
					t.Error(outcomes(unremoved), err)
				}
			}
			if waited := time.Since(start) > 0; waited != test.waits {
				t.Errorf("%+v: waited %t", test, waited)
			}
			j.process.Drain(t.Context())
			wantStored(t, l)
		})
	}
}

// An entry that could not be removed, and that a planned create would find, is returned once, whichever comes first, or why
// it cannot be read.
func TestUnremoved(t *testing.T) {
	for _, test := range []struct {
		isPlannedFirst bool
		refused        []string
		want           string
	}{
		{true, []string{"remove"}, "job-1"},
		{false, []string{"remove"}, "job-1"},
		{true, []string{"remove", "read"}, errFault.Error()},
	} {
		l := folder(t)
		name := post(t, l, "first", create, "job-1").name
		j := open(t, l, "second")
		fail(j, func(_ context.Context, tried string, access func() error) error {
			if slices.Contains(test.refused, tried) {
				return errFault
			}
			return access()
		})
		calls := []func(){func() { j.PlansCreate(create) }, func() { j.Remove(t.Context(), name) }}
		if !test.isPlannedFirst {
			slices.Reverse(calls)
		}
		var got []string
		for _, call := range append(calls, func() {}) {
			call()
			unremoved, err := j.Unremoved(t.Context())
			if got = append(got, outcomes(unremoved)...); errors.Is(err, errFault) {
				got = append(got, errFault.Error())
			}
		}
		if diff := cmp.Diff([]string{test.want}, got); diff != "" {
			t.Errorf("%+v: %s", test, diff)
		}
	}
}

// A caller that is cancelled does not fail the others, nor leave entries of a test (G21).
func TestPlan_cancelled(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, j *Journal, ref Ref){
		"prune": func(ctx context.Context, j *Journal, ref Ref) {
			if _, err := j.Find(ctx, otherCreate); err != nil {
				t.Error(err)
			}
			prune(t, j, ref)
		},
		"destroy": func(ctx context.Context, j *Journal, ref Ref) {
			j.process.Run = "first"
			if err := j.Destroyed(ctx, ref, "job-1"); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := folder(t)
			ref := post(t, l, "first", create, "job-1").Ref(Ref{})
			j := open(t, l, "second")
			fail(j, func(ctx context.Context, _ string, access func() error) error {
				return errors.Join(ctx.Err(), access())
			})
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			call(ctx, j, ref)
			wantStored(t, l)
		})
	}
}

// A journal that keeps nothing leaves the state as it is.
func TestDiscard(t *testing.T) {
	ref := Ref{Run: "first", Entries: []string{store.NewName(create, "first").ID}}
	j := Discard()
	c := want(t, j, create, "sent job-new", "sent job-new")
	for call, got := range map[string]Ref{"plan": prune(t, j, ref), "apply": c.Ref(ref)} {
		if diff := cmp.Diff(ref, got); diff != "" {
			t.Errorf("%s: %s", call, diff)
		}
	}
	if c.Recorded() != nil {
		t.Errorf("%v", c.Recorded())
	}
}
