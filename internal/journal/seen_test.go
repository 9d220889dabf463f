// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
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
	type refs struct{ none, message, pending Ref }
	type resolve func(ctx context.Context, j *Journal, r refs) error
	forget := func(jobID string) resolve {
		return func(ctx context.Context, j *Journal, _ refs) error { return j.Destroyed(ctx, jobID) }
	}
	seen := func(ctx context.Context, j *Journal, r refs) error { return j.Seen(ctx, "job-1", r.message) }
	for _, test := range []struct {
		name    string
		run     Run
		resolve resolve
		want    []string
	}{
		{"seen", "second", seen, without(0, 1, 4)},
		{"seen by the run that sent it", "first", seen, all},
		{"seen without private state", "second", func(ctx context.Context, j *Journal, r refs) error { return j.Seen(ctx, "job-1", r.none) }, without(0)},
		{"seen, named while pending", "second", func(ctx context.Context, j *Journal, r refs) error { return j.Seen(ctx, "job-9", r.pending) }, without(6)},
		{"destroyed", "second", forget("job-1"), without(0, 1, 3, 4)},
		{"destroyed by the run that sent it", "first", forget("job-1"), without(0, 1, 3, 4)},
		{"destroyed, no id", "second", forget(""), all},
	} {
		t.Run(test.name, func(t *testing.T) {
			stores(t, func(t *testing.T, l Location) {
				first := open(t, l, "first")
				post(t, first, create, "", "job-1")
				post(t, first, otherCreate, "", "job-2")
				post(t, first, forOther, "job-2", "job-2")
				var r refs
				at := first.store.now()
				for _, m := range []struct {
					key  Key
					from time.Duration
				}{{earlier, -time.Minute}, {later, 0}, {named, 0}} { // of one time, by a clock that shows whole seconds
					c := send(t, first, m.key, "job-1")
					c.entry.SentAt = at.Add(m.from).UnixMilli()
					c.Accepted("job-1")
					c.End()
					r.message = c.Ref()
				}
				r.pending = send(t, first, pendingCreate, "").Ref()
				j := first
				if test.run != "first" {
					j = open(t, l, test.run)
				}
				if err := test.resolve(t.Context(), j, r); err != nil {
					t.Error(err)
				}
				wantStored(t, l, test.want...)
			})
		})
	}
}

// An import names the create that it resolves, pending or unknown.
func TestImported(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		first := open(t, l, "first")
		post(t, first, create, "", "job-1")
		ref := send(t, first, create, "").Ref()
		j := open(t, l, "second")
		if got := []Ref{j.Imported(t.Context(), create), j.Imported(t.Context(), otherCreate)}; !slices.Equal(got, []Ref{ref, {}}) {
			t.Errorf("named %v, want %v alone", got, ref)
		}
	})
}

// Unresolved are the creates of this state alone.
func TestUnresolved(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		first := open(t, l, "first")
		post(t, first, create, "", "job-1")
		post(t, first, forOther, "job-2", "job-2")
		send(t, first, pendingCreate, "")
		other := open(t, l, "first")
		other.scope = "another"
		post(t, other, create, "", "job-3")
		j := next(t, l, "second")
		j.forget = []string{send(t, first, create, "").entry.id}
		var got []string
		for _, o := range j.Unresolved(t.Context()) {
			got = append(got, o.Project+" "+jobOf(o))
		}
		if diff := cmp.Diff([]string{"proj_1 job-1", "proj_1 unknown"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
