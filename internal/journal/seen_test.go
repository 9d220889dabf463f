// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What is known of a job in the state is forgotten, and nothing else. Red without,
// among others: clockError.
func TestStores_resolved(t *testing.T) {
	all := []string{
		"create job-1 first", "earlier job-1 first", "for another job job-2 first", "later job-1 first",
		"named job-1 first", "other create job-2 first", "pending create pending first",
	}
	without := func(gone ...int) []string {
		var kept []string
		for i, name := range all {
			if !slices.Contains(gone, i) {
				kept = append(kept, name)
			}
		}
		return kept
	}
	type refs struct{ message, pending Ref }
	seen := func(jobID string, ref func(r refs) Ref) func(context.Context, *Journal, refs) error {
		return func(ctx context.Context, j *Journal, r refs) error { return j.Seen(ctx, jobID, ref(r)) }
	}
	forget := func(jobID string) func(context.Context, *Journal, refs) error {
		return func(ctx context.Context, j *Journal, _ refs) error { return j.Forget(ctx, jobID) }
	}
	message := func(r refs) Ref { return r.message }
	none := func(refs) Ref { return Ref{} }
	tests := []struct {
		name    string
		run     Run
		claimed bool // job-1, by a third run since the second has loaded the entries
		resolve func(ctx context.Context, j *Journal, r refs) error
		want    []string
	}{
		{name: "seen", run: "second", resolve: seen("job-1", message), want: without(0, 1, 4)},
		{name: "seen without private state", run: "second", resolve: seen("job-1", none), want: without(0)},
		{name: "seen, named while pending", run: "second", resolve: seen("job-9", func(r refs) Ref { return r.pending }), want: without(6)},
		{name: "seen, no id", run: "second", resolve: seen("", none), want: all},
		{name: "seen by the run that sent it", run: "first", resolve: seen("job-1", message), want: all},
		{name: "imported", run: "second", resolve: func(ctx context.Context, j *Journal, _ refs) error { return j.Imported(ctx, "job-2") }, want: []string{
			"create job-1 first", "earlier job-1 first", "for another job job-2 second", "later job-1 first",
			"named job-1 first", "other create job-2 second", "pending create pending first",
		}},
		{name: "destroyed", run: "second", resolve: forget("job-1"), want: without(0, 1, 3, 4)},
		{name: "destroyed, claimed by another run", run: "second", claimed: true, resolve: forget("job-1"), want: without(0, 1, 3, 4)},
		{name: "destroyed by the run that sent it", run: "first", resolve: forget("job-1"), want: without(0, 1, 3, 4)},
		{name: "destroyed, no id", run: "second", resolve: forget(""), want: all},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stores(t, func(t *testing.T, l Location) {
				first := open(t, l, "first")
				post(t, first, create, "", "job-1")
				post(t, first, otherCreate, "", "job-2")
				post(t, first, forOther, "job-2", "job-2")
				messageAt(t, first, earlier, -time.Minute)
				r := refs{message: messageAt(t, first, named, 0)}
				messageAt(t, first, later, -time.Second) // by a clock that shows whole seconds
				r.pending = send(t, first, pendingCreate, "").Ref()
				j := first
				if test.run != "first" {
					j = open(t, l, test.run)
				}
				if test.claimed {
					announce(t, j, create)
					wantTakeOver(t, open(t, l, "third"), create, "job-1")
				}
				if err := test.resolve(t.Context(), j, r); err != nil {
					t.Error(err)
				}
				wantStored(t, l, test.want...)
			})
		})
	}
}

// messageAt makes a message that was sent some time from now.
func messageAt(t *testing.T, j *Journal, key Key, from time.Duration) Ref {
	t.Helper()
	c := send(t, j, key, "job-1")
	c.entry.SentAt = c.entry.written.Add(from).UnixMilli()
	c.Answered("job-1")
	c.End()
	return c.Ref()
}

// A request that was seen but whose entry cannot be removed may not be taken
// for one that was not: whoever wants to send the same is refused.
func TestStores_stuck(t *testing.T) {
	stores(t, func(t *testing.T, l Location) {
		post(t, open(t, l, "first"), create, "", "job-1")
		next, reported := openReporting(t, l, "second")
		fail(next, "remove", fault)
		got := []bool{errors.Is(next.Seen(t.Context(), "job-1", Ref{}), errFault)}
		for _, key := range []Key{create, otherCreate} {
			o, err := next.TakeOver(t.Context(), key)
			if o != nil {
				t.Errorf("took over %s", jobOf(o))
			}
			got = append(got, errors.Is(next.Blocked(key), errFault), errors.Is(err, errFault))
		}
		if diff := cmp.Diff([]bool{l.Named, l.Named, l.Named, false, false}, got); diff != "" {
			t.Error(diff)
		}
		wantReports(t, reported, in(l, 1, 0))
	})
}

func TestKeys(t *testing.T) {
	keys := map[Key]bool{
		CreateKey("a", "b"): true, CreateKey("ab"): true, CreateKey("a", "b", ""): true, CreateKey("b", "a"): true,
		MessageKey("a", "b"): true, CreateKey(): true, CreateKey(""): true,
	}
	if len(keys) != 7 || !keys[CreateKey("a", "b")] {
		t.Errorf("keys of different requests are equal, or of the same are not: %v", keys)
	}
}
