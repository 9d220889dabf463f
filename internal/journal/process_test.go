// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
)

func TestX04_process_is_killed(t *testing.T) {
	dir := folder(t)
	child := startChild(t, "posts", dir)
	child.ready()
	child.kill()
	wantFiles(t, dir, 1)
	j := openQuiet(t, dir)
	if got := takeAll(t, j, key); !cmp.Equal(got, []string{"job_1", "intent"}) {
		t.Errorf("took %q", got)
	}
	crash(t, j)
}

func TestX07_process_ends_cleanly(t *testing.T) {
	dir := folder(t)
	child := startChild(t, "closes", dir)
	child.ready()
	wantFiles(t, dir, 1)
	if openQuiet(t, dir).HasLeft() {
		t.Error("a living process's request is given away")
	}
	child.finish()
	wantFiles(t, dir, 0)
}

// Take waits for a process whose CLI may be gone. Red without waitForOrphans.
func TestX04_process_is_killed_while_another_asks(t *testing.T) {
	dir := folder(t)
	child := startChild(t, "posts", dir)
	child.ready()
	synctest.Test(t, func(t *testing.T) {
		j := openQuiet(t, dir)
		time.AfterFunc(time.Second, child.kill) // the clock stands until it is dead
		if _, id := take(t, j, key); id != "job_1" {
			t.Errorf("took %s", id)
		}
		crash(t, j)
	})
}

// The table of what becomes of Take beside a living process that has noted the key.
func TestTake_beside_a_living_process(t *testing.T) {
	tests := []struct {
		name    string
		dies    time.Duration // 0: it does not
		ends    time.Duration // cleanly; 0: it does not
		patient time.Duration // 0: as long as it takes
		answer  time.Duration // 0: it has come already
		own     bool          // the process is our own
		key     Key
		want    string
		took    time.Duration
	}{
		{name: "lives on", key: key, want: "nothing", took: orphanGrace},
		{name: "dies", dies: time.Second, key: key, want: "job_1", took: time.Second},
		{name: "ends", ends: time.Second, key: key, want: "nothing", took: time.Second},
		{name: "has no answer", answer: time.Hour, key: key, want: "nothing", took: answerGrace + orphanGrace},
		{name: "has its answer late", answer: time.Minute, key: key, want: "nothing", took: time.Minute + orphanGrace},
		{name: "has its answer late, and dies", answer: 50 * time.Second, dies: 51 * time.Second, key: key, want: "job_1", took: 51 * time.Second},
		{name: "dies without an answer", answer: time.Hour, dies: 50 * time.Second, key: key, want: "", took: 50 * time.Second},
		{name: "is our own", own: true, key: key, want: "nothing"}, // as under count
		{name: "has another key", key: otherKey, want: "nothing"},
		{name: "the caller gives up", patient: time.Second, key: key, want: "nothing", took: time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t)
			synctest.Test(t, func(t *testing.T) {
				other := openQuiet(t, dir)
				call := note(other, key, "")
				answered := time.AfterFunc(test.answer, func() { call.Answered("job_1") })
				defer answered.Stop()
				synctest.Wait()
				if test.dies > 0 {
					time.AfterFunc(test.dies, func() { crash(t, other) })
				}
				if test.ends > 0 {
					time.AfterFunc(test.ends, func() { call.End(); other.Close() })
				}
				ctx := t.Context()
				if test.patient > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.patient)
					defer cancel()
				}
				j := openQuiet(t, dir)
				if test.own {
					j = other
				}
				start := time.Now()
				got := "nothing"
				if r := j.Take(ctx, test.key); r != nil {
					got = r.JobID
				}
				if got != test.want {
					t.Errorf("took %s, want %s", got, test.want)
				}
				if took := time.Since(start); took < test.took || took > test.took+100*time.Millisecond {
					t.Errorf("it took %s, want %s", took, test.took)
				}
				if test.dies == 0 && test.ends == 0 {
					crash(t, other)
				}
			})
		})
	}
}

// A process that lives beside us costs its wait once, and what it leaves when
// it dies after all is found. Red without tolerated.
func TestTake_beside_a_living_process_again(t *testing.T) {
	dir := folder(t)
	synctest.Test(t, func(t *testing.T) {
		other, j := openQuiet(t, dir), openQuiet(t, dir)
		note(other, key, "", "job_1")
		start := time.Now()
		for range 3 {
			if _, id := take(t, j, key); id != "nothing" {
				t.Fatalf("took %s from a living process", id)
			}
		}
		if took := time.Since(start); took > orphanGrace+100*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		crash(t, other)
		if _, id := take(t, j, key); id != "job_1" {
			t.Errorf("took %s from a dead process", id)
		}
		crash(t, j)
	})
}

// Two processes that look at a dead one's file at the same time both see it.
// Red with a lock that is not shared.
func TestDead_process_seen_by_two(t *testing.T) {
	dir := folder(t)
	crashed(t, dir, "", "job_1")
	locks, err := filepath.Glob(filepath.Join(dir, "*"+lockSuffix))
	if err != nil || len(locks) != 1 {
		t.Fatalf("%q, %v", locks, err)
	}
	other := flock.New(locks[0])
	if locked, err := other.TryRLock(); !locked {
		t.Fatal(err)
	}
	if !openQuiet(t, dir).HasLeft() {
		t.Error("the file is taken for a living process's")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
}

// Looking at a living process's file changes nothing of it.
func TestLiving_process_is_not_touched(t *testing.T) {
	dir := folder(t)
	other, j := openQuiet(t, dir), openQuiet(t, dir)
	call := note(other, key, "", "job_1")
	before := text(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	j.HasLeft()
	j.Seen("job_1", key)
	if r := j.Take(ctx, key); r != nil {
		t.Errorf("took %+v", r)
	}
	j.Close()
	if after := text(t, dir); after != before {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
	call.End()
	other.Close()
	wantFiles(t, dir, 0)
}
