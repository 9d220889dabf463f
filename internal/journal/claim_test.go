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

// Whoever wants an entry at the same time, one gets it.
func TestStores_claimRace(t *testing.T) {
	key := CreateKey("a prompt")
	for name, runs := range map[string][2]Run{"one run": {"second", "second"}, "two runs": {"second", "third"}} {
		t.Run(name, func(t *testing.T) {
			places(t, func(t *testing.T, l Location) {
				for _, want := range []string{"job-1", "unknown"} {
					p, j := open(t, l, "first")
					c := send(t, j, key, "")
					p.Stopping()
					if want == "unknown" {
						c.Unknown()
					} else {
						c.Answered(want)
					}
					c.End()
					p.Close(t.Context())

					_, a := open(t, l, runs[0])
					_, b := open(t, l, runs[1])
					for _, j := range []*Journal{a, b} { // both know the entry before one takes it
						if _, err := j.Announce(t.Context(), key); err != nil {
							t.Fatal(err)
						}
					}
					if diff := cmp.Diff(sorted("none", "none", "none", want), takers(t, key, a, b, a, b)); diff != "" {
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

func sorted(texts ...string) []string {
	slices.Sort(texts)
	return texts
}

// The entries of another process of the same run, such as a provider alias, are
// neither taken nor waited for.
func TestStores_sameRun(t *testing.T) {
	key := CreateKey("a prompt")
	places(t, func(t *testing.T, l Location) {
		_, first := open(t, l, "run")
		send(t, first, key, "")
		post(t, first, key, "", "job-1")
		_, alias := open(t, l, "run")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for name, ask := range map[string]func(context.Context, Key) (*Orphan, error){"Announce": alias.Announce, "TakeOver": alias.TakeOver} {
			if o, err := ask(ctx, key); o != nil || err != nil {
				t.Errorf("%s: %+v, %v", name, o, err)
			}
		}
		if first.TookOver(ctx, "job-1") || alias.TookOver(ctx, "job-1") {
			t.Error("a run has taken over what it started")
		}
		_, next := open(t, l, "next")
		if got := takeOver(t, next, key); got != "job-1" {
			t.Errorf("another run took %s", got)
		}
	})
}

// The response arrives between the last look at a pending entry and its claim.
// Red when a lost claim, or the answer in a claimed file, is not looked at again.
func TestStores_answeredBeforeClaim(t *testing.T) {
	key := CreateKey("a prompt")
	places(t, func(t *testing.T, l Location) {
		_, j := open(t, l, "first")
		c := send(t, j, key, "")
		_, next := open(t, l, "second")
		answered := false
		fail(next, func(_ context.Context, op string) error {
			if op == "claim" && !answered {
				answered = true
				c.Answered("job-1")
			}
			return nil
		}).isDead = func() bool { return true }
		if got := takeOver(t, next, key); got != "job-1" {
			t.Errorf("took over %s", got)
		}
	})
}

// A default folder that cannot be used any more sends nothing twice.
func TestTakeOver_defaultFolderFails(t *testing.T) {
	key := CreateKey("a prompt")
	for _, kind := range []string{"read", "claim"} {
		t.Run(kind, func(t *testing.T) {
			folders(t, func(t *testing.T, l Location) {
				p, j := open(t, l, "first")
				p.Stopping()
				post(t, j, key, "", "job-1")
				crash(j)
				_, next := openReporting(t, l, "second", new(reports).add)
				fail(next, failing(kind))
				o, err := next.TakeOver(t.Context(), key)
				if l.Named && err == nil || !l.Named && (err != nil || jobOf(o) != "job-1") {
					t.Errorf("took over %s, %v", jobOf(o), err)
				}
				next.store = next.store.(*faulty).store
				if again := takeOver(t, next, key); again != map[bool]string{true: "job-1", false: "none"}[l.Named] {
					t.Errorf("then took over %s", again)
				}
			})
		})
	}
}

// What another run has claimed is found under its new owner, and nothing else is.
func TestStores_forgetClaimed(t *testing.T) {
	places(t, func(t *testing.T, l Location) {
		_, j := open(t, l, "first")
		post(t, j, create, "", "job-1")
		post(t, j, otherCreate, "", "job-2")
		_, stale := open(t, l, "second")
		if _, err := stale.Announce(t.Context(), create); err != nil {
			t.Fatal(err)
		}
		_, other := open(t, l, "third")
		if got := takeOver(t, other, create); got != "job-1" {
			t.Errorf("took over %s", got)
		}
		if err := stale.Forget(t.Context(), "job-1"); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"other create job-2 first"}, stored(t, l, keyNames)); diff != "" {
			t.Error(diff)
		}
	})
}
