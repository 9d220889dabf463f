// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// A plan announces what it finds as often as it is asked, and changes nothing.
func TestStores_announce(t *testing.T) {
	stores(t, func(t *testing.T, l store.Location) {
		id := lose(t, l, "first", create).name.ID
		post(t, l, "first", message, "job-1")
		for forgotten, want := range map[string][]string{"": {"unknown"}, id: nil} {
			j := open(t, l, "second", forgotten)
			for range 2 {
				wantAnnounced(t, j, create, want...)
			}
		}
		wantAnnounced(t, open(t, l, "first"), create) // never its own
		wantStored(t, l, "create pending first", "message job-1 first")
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

// The prompt of an imported job may have been edited. An import that is not stored yet removes nothing.
func TestShownByImport(t *testing.T) {
	kept := []string{"other create job-1 first", "other create job-2 first"}
	for _, test := range []struct {
		inState, imported bool
		stored            []string
	}{
		{true, false, kept[1:]},
		{true, true, kept}, // by this run
		{false, false, kept},
	} {
		l := store.Location{Named: true, Folder: t.TempDir()}
		post(t, l, "first", otherCreate, "job-1")
		post(t, l, "first", otherCreate, "job-2")
		j := open(t, l, "second")
		if test.inState {
			j.InState("job-1")
		}
		if test.imported {
			j.Imported("job-1")
			wantAnnounced(t, j, otherCreate, "job-2")
		}
		if err := j.ShownByImport(t.Context(), "job-1"); err != nil {
			t.Error(err)
		}
		wantStored(t, l, test.stored...)
	}
}

// A query says what it cannot read. A plan removes nothing if it cannot read what this run has written: that may be
// about the same job.
func TestPlan_faults(t *testing.T) {
	l := store.Location{Named: true, Folder: t.TempDir()}
	post(t, l, "first", create, "job-1")
	want(t, open(t, l, "second"), create, "taken over job-1")
	unseen := func(j *Journal) ([]*Earlier, error) { return j.Unseen(t.Context()) }
	announce := func(j *Journal) ([]*Earlier, error) { return j.Announce(t.Context(), create, true) }
	for _, test := range []struct {
		op     string
		number int
		call   func(j *Journal) ([]*Earlier, error)
	}{{"list", 1, unseen}, {"read", 1, unseen}, {"read", 2, announce}} { // it reads the other run's first
		j := open(t, l, "second")
		j.InState("job-1")
		failing(j, test.op, test.number, test.number)
		if found, err := test.call(j); !errors.Is(err, errFault) || len(found) > 0 {
			t.Errorf("%s fails: %v, %v", test.op, found, err)
		}
		wantStored(t, l, "create job-1 first", "create job-1 second")
	}
}

// What cannot be removed stays in the state, and is not found either. After a failure no
// other resource waits.
func TestSeen_faults(t *testing.T) {
	for _, op := range []string{"list", "remove"} {
		folders(t, func(t *testing.T, l store.Location) {
			synctest.Test(t, func(t *testing.T) {
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
					remaining, err := j.Seen(t.Context(), ref)
					if diff := cmp.Diff(ref, remaining); diff != "" || !errors.As(err, new(*Error)) {
						t.Fatal(op, err, diff)
					}
				}
				if took := time.Since(start); took != opTimeout {
					t.Errorf("%s took %s", op, took)
				}
				want(t, open(t, l, "third"), create, "taken over job-1")
				later := open(t, l, "fourth")
				later.Settle(ref)
				want(t, later, create, "taken over job-1") // of the third
			})
		})
	}
}

// A caller that is cancelled does not fail the others.
func TestSeen_cancelled(t *testing.T) {
	l := store.Location{Named: true, Folder: t.TempDir()}
	ref := post(t, l, "first", create, "job-1").Ref(Ref{})
	j := open(t, l, "second")
	fail(j, func(ctx context.Context, _ string, access func() error) error {
		return errors.Join(ctx.Err(), access())
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Announce(ctx, otherCreate, true); err != nil {
		t.Error(err)
	}
	seen(t, j, ref)
	wantStored(t, l)
}

// A journal that keeps nothing leaves the state as it is.
func TestDiscard(t *testing.T) {
	ref := Ref{Run: "first", Entries: []string{store.NewName(create, "first").String()}}
	j := Discard()
	if diff := cmp.Diff(ref, seen(t, j, ref)); diff != "" {
		t.Error(diff)
	}
	c := want(t, j, create, "sent job-new", "sent job-new")
	if got := c.Ref(Ref{}); len(got.Entries) > 0 || c.Recorded() != nil {
		t.Errorf("%v, %v", got, c.Recorded())
	}
}
