// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Whoever wants an entry at the same time, one gets it.
func TestStores_claimRace(t *testing.T) {
	for name, runs := range map[string][2]Run{"one run": {"second", "second"}, "two runs": {"second", "third"}} {
		t.Run(name, func(t *testing.T) {
			stores(t, func(t *testing.T, l Location) {
				for want, end := range map[string]func(c *Call){"unknown": (*Call).Unknown, "job-1": func(c *Call) { c.Answered("job-1") }} {
					j := open(t, l, "first")
					c := send(t, j, create, "")
					j.process.Stopping()
					end(c)
					c.End()
					j.process.Close(t.Context())

					a, b := open(t, l, runs[0]), open(t, l, runs[1])
					announce(t, a, create) // both know the entry before one takes it
					announce(t, b, create)
					got := make([]string, 4)
					var wg sync.WaitGroup
					for i, j := range []*Journal{a, b, a, b} {
						wg.Go(func() { got[i] = takeOver(t, j, create) })
					}
					wg.Wait()
					got = slices.DeleteFunc(got, func(job string) bool { return job == "none" })
					if diff := cmp.Diff([]string{want}, got); diff != "" {
						t.Error(diff)
					}
					for _, j := range []*Journal{a, b} {
						if err := j.Forget(t.Context(), "job-1"); err != nil {
							t.Error(err)
						}
					}
				}
			})
		})
	}
}

// The entries of another process of the same run, such as a provider alias, are
// neither taken nor waited for.
func TestStores_sameRun(t *testing.T) {
	stores(t, func(t *testing.T, l Location) {
		first := open(t, l, "run")
		send(t, first, create, "")
		post(t, first, create, "", "job-1")
		alias := open(t, l, "run")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for name, ask := range map[string]func(context.Context, Key) (*Orphan, error){"Announce": alias.Announce, "TakeOver": alias.TakeOver} {
			if o, err := ask(ctx, create); o != nil || err != nil {
				t.Errorf("%s: %+v, %v", name, o, err)
			}
		}
		if first.TookOver(ctx, "job-1") || alias.TookOver(ctx, "job-1") {
			t.Error("a run has taken over what it started")
		}
		wantTakeOver(t, open(t, l, "next"), create, "job-1")
	})
}

// A default folder that cannot be used any more sends nothing twice.
func TestTakeOver_defaultFolderFails(t *testing.T) {
	for _, op := range []string{"read", "claim"} {
		t.Run(op, func(t *testing.T) {
			folders(t, func(t *testing.T, l Location) {
				j := open(t, l, "first")
				post(t, j, create, "", "job-1")
				crash(j)
				next, _ := openReporting(t, l, "second")
				f := fail(next, op, fault)
				o, err := next.TakeOver(t.Context(), create)
				if got := jobOf(o); (err != nil) != l.Named || got != in(l, "job-1", "none") {
					t.Errorf("took over %s, %v", got, err)
				}
				next.store = f.store
				wantTakeOver(t, next, create, in(l, "none", "job-1"))
			})
		})
	}
}

// What a run makes of a request that it took over, and ends undisturbed.
func TestStores_takenOver(t *testing.T) {
	tests := []struct {
		name             string
		do               func(j *Journal, o *Orphan) error
		byDefault, named string
	}{
		{"into the state", func(*Journal, *Orphan) error { return nil }, "none", "job-1"},
		{"kept", func(j *Journal, o *Orphan) error { j.Keep(o); return nil }, "job-1", "job-1"},
		{"dropped", func(j *Journal, o *Orphan) error { return j.Drop(t.Context(), o) }, "none", "none"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stores(t, func(t *testing.T, l Location) {
				post(t, open(t, l, "first"), create, "", "job-1")
				next := open(t, l, "second")
				took := []bool{next.TookOver(t.Context(), "job-1")}
				o, err := next.TakeOver(t.Context(), create)
				if err != nil {
					t.Fatal(err)
				}
				alias := open(t, l, "second")
				took = append(took, next.TookOver(t.Context(), "job-1"), alias.TookOver(t.Context(), "job-1"), next.TookOver(t.Context(), "job-2"), next.TookOver(t.Context(), ""))
				if diff := cmp.Diff([]bool{false, true, true, false, false}, took); diff != "" {
					t.Error(diff)
				}
				if err := test.do(next, o); err != nil {
					t.Error(err)
				}
				next.process.Close(t.Context())
				wantTakeOver(t, open(t, l, "third"), create, in(l, test.byDefault, test.named))
			})
		})
	}
}
