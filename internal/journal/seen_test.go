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
	without := func(gone ...int) (kept []string) {
		for i, name := range all {
			if !slices.Contains(gone, i) {
				kept = append(kept, name)
			}
		}
		return kept
	}
	imported := slices.Clone(all)
	imported[2], imported[5] = "for another job job-2 second", "other create job-2 second"
	type refs struct{ none, message, pending Ref }
	type resolve func(ctx context.Context, j *Journal, r refs) error
	forget := func(jobID string) resolve {
		return func(ctx context.Context, j *Journal, _ refs) error { return j.Forget(ctx, jobID) }
	}
	seen := func(ctx context.Context, j *Journal, r refs) error { return j.Seen(ctx, "job-1", r.message) }
	for _, test := range []struct {
		name    string
		run     Run
		claimed bool // job-1, by a third run since the second has loaded the entries
		resolve resolve
		want    []string
	}{
		{"seen", "second", false, seen, without(0, 1, 4)},
		{"seen by the run that sent it", "first", false, seen, all},
		{"seen without private state", "second", false, func(ctx context.Context, j *Journal, r refs) error { return j.Seen(ctx, "job-1", r.none) }, without(0)},
		{"seen, named while pending", "second", false, func(ctx context.Context, j *Journal, r refs) error { return j.Seen(ctx, "job-9", r.pending) }, without(6)},
		{"imported", "second", false, func(ctx context.Context, j *Journal, _ refs) error { return j.Imported(ctx, "job-2") }, imported},
		{"destroyed, claimed by another run", "second", true, forget("job-1"), without(0, 1, 3, 4)},
		{"destroyed by the run that sent it", "first", false, forget("job-1"), without(0, 1, 3, 4)},
		{"destroyed, no id", "second", false, forget(""), all},
	} {
		t.Run(test.name, func(t *testing.T) {
			stores(t, func(t *testing.T, l Location) {
				first := open(t, l, "first")
				post(t, first, create, "", "job-1")
				post(t, first, otherCreate, "", "job-2")
				post(t, first, forOther, "job-2", "job-2")
				var r refs
				for _, m := range []struct {
					key  Key
					from time.Duration
				}{{earlier, -time.Minute}, {later, -time.Second}, {named, 0}} { // later, by a clock that shows whole seconds
					c := send(t, first, m.key, "job-1")
					c.entry.SentAt = c.entry.written.Add(m.from).UnixMilli()
					c.Answered("job-1")
					c.End()
					r.message = c.Ref()
				}
				r.pending = send(t, first, pendingCreate, "").Ref()
				j := first
				if test.run != "first" {
					j = open(t, l, test.run)
				}
				if test.claimed {
					_ = j.ready(t.Context())
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
