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

var (
	create, otherCreate     = CreateKey("a prompt"), CreateKey("another")
	earlier, named, later   = MessageKey("1"), MessageKey("2"), MessageKey("3")
	pendingCreate, elseName = CreateKey("pending"), MessageKey("for another job")
	keyNames                = map[Key]string{
		create: "create", otherCreate: "other create", earlier: "earlier", named: "named", later: "later",
		pendingCreate: "pending create", elseName: "for another job",
	}
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
	tests := []struct {
		name    string
		resolve func(ctx context.Context, j *Journal, message, pending Ref) error
		run     Run // "second" when empty
		want    []string
	}{
		{name: "seen", resolve: func(ctx context.Context, j *Journal, message, _ Ref) error { return j.Seen(ctx, "job-1", message) }, want: without(0, 1, 4)},
		{name: "seen without private state", resolve: func(ctx context.Context, j *Journal, _, _ Ref) error { return j.Seen(ctx, "job-1", Ref{}) }, want: without(0)},
		{name: "seen, named while pending", resolve: func(ctx context.Context, j *Journal, _, pending Ref) error {
			return j.Seen(ctx, "job-9", pending)
		}, want: without(6)},
		{name: "seen, no id", resolve: func(ctx context.Context, j *Journal, _, _ Ref) error { return j.Seen(ctx, "", Ref{}) }, want: all},
		{name: "seen by the run that sent it", run: "first", resolve: func(ctx context.Context, j *Journal, message, _ Ref) error {
			return j.Seen(ctx, "job-1", message)
		}, want: all},
		{name: "imported", resolve: func(ctx context.Context, j *Journal, _, _ Ref) error { return j.Imported(ctx, "job-2") }, want: []string{
			"create job-1 first", "earlier job-1 first", "for another job job-2 second", "later job-1 first",
			"named job-1 first", "other create job-2 second", "pending create pending first",
		}},
		{name: "destroyed", resolve: func(ctx context.Context, j *Journal, _, _ Ref) error { return j.Forget(ctx, "job-1") }, want: without(0, 1, 3, 4)},
		{name: "destroyed by the run that sent it", run: "first", resolve: func(ctx context.Context, j *Journal, _, _ Ref) error {
			return j.Forget(ctx, "job-1")
		}, want: without(0, 1, 3, 4)},
		{name: "destroyed, no id", resolve: func(ctx context.Context, j *Journal, _, _ Ref) error { return j.Forget(ctx, "") }, want: all},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			places(t, func(t *testing.T, l Location) {
				_, j := open(t, l, "first")
				post(t, j, create, "", "job-1")
				post(t, j, otherCreate, "", "job-2")
				post(t, j, elseName, "job-2", "job-2")
				messageAt(t, j, earlier, -time.Minute)
				message := messageAt(t, j, named, 0)
				messageAt(t, j, later, -time.Second) // by a clock that shows whole seconds
				pending := send(t, j, pendingCreate, "").Ref()
				resolver := j
				if test.run == "" {
					_, resolver = open(t, l, "second")
				}
				if err := test.resolve(t.Context(), resolver, message, pending); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(test.want, stored(t, l, keyNames)); diff != "" {
					t.Error(diff)
				}
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
	places(t, func(t *testing.T, l Location) {
		_, j := open(t, l, "first")
		post(t, j, create, "", "job-1")
		r := new(reports)
		_, next := openReporting(t, l, "second", r.add)
		fail(next, failing("remove"))
		ask := func(key Key) []bool {
			blocked := next.Blocked(key)
			o, takeErr := next.TakeOver(t.Context(), key)
			if o != nil {
				t.Errorf("took over %s", jobOf(o))
			}
			return []bool{errors.Is(blocked, errFault), errors.Is(takeErr, errFault)}
		}
		seen := errors.Is(next.Seen(t.Context(), "job-1", Ref{}), errFault)
		got := append(append([]bool{seen}, ask(create)...), ask(otherCreate)...)
		if diff := cmp.Diff([]bool{l.Named, l.Named, l.Named, false, false}, got); diff != "" {
			t.Error(diff)
		}
		if r.count() != map[bool]int{false: 1}[l.Named] {
			t.Errorf("reported: %v", r.errs)
		}
	})
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
			places(t, func(t *testing.T, l Location) {
				_, j := open(t, l, "first")
				post(t, j, create, "", "job-1")
				p, next := open(t, l, "second")
				before := next.TookOver(t.Context(), "job-1")
				o, err := next.TakeOver(t.Context(), create)
				if err != nil {
					t.Fatal(err)
				}
				_, alias := open(t, l, "second")
				took := []bool{before, next.TookOver(t.Context(), "job-1"), alias.TookOver(t.Context(), "job-1"), next.TookOver(t.Context(), "job-2"), next.TookOver(t.Context(), "")}
				if diff := cmp.Diff([]bool{false, true, true, false, false}, took); diff != "" {
					t.Error(diff)
				}
				if err := test.do(next, o); err != nil {
					t.Error(err)
				}
				p.Close(t.Context())
				want := test.byDefault
				if l.Named {
					want = test.named
				}
				_, third := open(t, l, "third")
				if got := takeOver(t, third, create); got != want {
					t.Errorf("the next run took over %s, want %s", got, want)
				}
			})
		})
	}
}

func TestKeys(t *testing.T) {
	keys := map[Key]bool{
		CreateKey("a", "b"): true, CreateKey("ab"): true, CreateKey("a", "b", ""): true, CreateKey("b", "a"): true,
		MessageKey("a", "b"): true, CreateKey(): true, CreateKey(""): true,
	}
	if len(keys) != 7 || keys[CreateKey("a", "b")] != keys[CreateKey("a", "b", "")] {
		t.Errorf("keys of different requests are equal, or of the same are not: %v", keys)
	}
}
