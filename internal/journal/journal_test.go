// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNothing_is_touched_before_the_first_POST(t *testing.T) {
	dir := folder(t)
	j := openQuiet(t, dir)
	call := j.Begin(t.Context(), key)
	if left, id := take(t, j, key); left != nil {
		t.Errorf("took %s out of nothing", id)
	}
	j.Seen("job_1", key)
	call.End()
	wantFiles(t, dir, 0)
	j.Close()
	wantFiles(t, dir, 0)
}

func TestNil_journal(t *testing.T) {
	var j *Journal
	call := note(j, key, "", "job_1", "withdrawn")
	call.End()
	j.Seen("job_1", key)
	j.Stopping()
	j.Drain(t.Context())
	if j.HasLeft() || j.Take(t.Context(), key) != nil || j.Lost() != nil {
		t.Error("a nil journal holds something")
	}
	j.Close()
}

// What the end of a process leaves: red without each of the conditions in
// Close and End.
func TestClose(t *testing.T) {
	tests := []struct {
		name string
		do   func(ctx context.Context, cancel context.CancelFunc, j *Journal)
		kept int
		lost bool
	}{
		{name: "answered", do: func(ctx context.Context, _ context.CancelFunc, j *Journal) {
			noteIn(ctx, j, key, "", "job_1").End()
		}},
		{name: "outcome unknown, and said so", do: func(ctx context.Context, _ context.CancelFunc, j *Journal) {
			noteIn(ctx, j, key, "").End()
		}},
		{name: "withdrawn", do: func(ctx context.Context, _ context.CancelFunc, j *Journal) {
			noteIn(ctx, j, key, "", "withdrawn").End()
		}},
		{name: "withdrawn, call under way", do: func(ctx context.Context, _ context.CancelFunc, j *Journal) {
			noteIn(ctx, j, key, "", "withdrawn")
		}},
		{name: "sent, call under way", kept: 1, do: func(ctx context.Context, _ context.CancelFunc, j *Journal) {
			noteIn(ctx, j, key, "")
		}},
		{name: "answered, call under way", kept: 1, do: func(ctx context.Context, _ context.CancelFunc, j *Journal) {
			noteIn(ctx, j, key, "", "job_1")
		}},
		{name: "adopted, call under way", kept: 1, do: func(ctx context.Context, _ context.CancelFunc, j *Journal) {
			noteIn(ctx, j, key, "job_1")
		}},
		{name: "sent again after a refusal, call under way", kept: 1, do: func(ctx context.Context, _ context.CancelFunc, j *Journal) {
			noteIn(ctx, j, key, "", "withdrawn", "")
		}},
		{name: "one of two under way", kept: 1, do: func(ctx context.Context, _ context.CancelFunc, j *Journal) {
			noteIn(ctx, j, key, "", "job_1")
			noteIn(ctx, j, key, "", "job_2").End()
		}},
		{name: "connection gone", kept: 1, lost: true, do: func(ctx context.Context, cancel context.CancelFunc, j *Journal) {
			call := noteIn(ctx, j, key, "", "job_1")
			cancel()
			call.End()
		}},
		{name: "connection gone, two calls", kept: 1, lost: true, do: func(ctx context.Context, cancel context.CancelFunc, j *Journal) {
			one, two := noteIn(ctx, j, key, "", "job_1"), noteIn(ctx, j, key, "", "job_2")
			cancel()
			one.End()
			two.End()
		}},
		{name: "connection gone, refused", do: func(ctx context.Context, cancel context.CancelFunc, j *Journal) {
			call := noteIn(ctx, j, key, "", "withdrawn")
			cancel()
			call.End()
		}},
		{name: "asked to stop", do: func(ctx context.Context, cancel context.CancelFunc, j *Journal) {
			call := noteIn(ctx, j, key, "", "job_1")
			j.Stopping()
			cancel()
			call.End()
		}},
		{name: "answered before the connection went", do: func(ctx context.Context, cancel context.CancelFunc, j *Journal) {
			noteIn(ctx, j, key, "", "job_1").End()
			cancel()
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t)
			j := openQuiet(t, dir)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			test.do(ctx, cancel, j)
			if j.hasLost() != test.lost {
				t.Errorf("lost: %t, want %t", !test.lost, test.lost)
			}
			j.Close()
			wantFiles(t, dir, test.kept)
			j.Close() // a second one does no harm
			wantFiles(t, dir, test.kept)
			crash(t, j)
		})
	}
}

// Red without: the order of the two locks in Close.
func TestClose_while_the_first_POST_opens_the_file(t *testing.T) {
	dir := folder(t)
	j := openQuiet(t, dir)
	call := j.Begin(t.Context(), key)
	opening, closing, done := make(chan bool), make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		call.pending()
		err := j.writer.append(entry{Number: call.number, Key: key}, true, func() (logFile, error) {
			close(opening)
			<-closing
			time.Sleep(20 * time.Millisecond) // for Close to come as far as it can
			return j.open()
		})
		if err != nil {
			t.Error(err)
		}
	}()
	<-opening
	close(closing)
	j.Close()
	<-done
	wantFiles(t, dir, 1) // the POST was under way
	crash(t, j)
}

// Red without: the file staying open when Close keeps it.
func TestAnswer_after_Close(t *testing.T) {
	dir := folder(t)
	j := openQuiet(t, dir)
	call := note(j, key, "")
	j.Close()
	call.Answered("job_1")
	crash(t, j)
	if got := takeAll(t, openQuiet(t, dir), key); !cmp.Equal(got, []string{"job_1"}) {
		t.Errorf("took %q", got)
	}
}

func TestPOST_after_Close(t *testing.T) {
	dir := folder(t)
	j := openQuiet(t, dir)
	note(j, key, "", "job_1").End()
	j.Close()
	wantFiles(t, dir, 0)
	note(j, key, "", "job_2")
	crash(t, j)
	if got := takeAll(t, openQuiet(t, dir), key); !cmp.Equal(got, []string{"job_2"}) {
		t.Errorf("took %q", got)
	}
}

func TestDrain(t *testing.T) {
	tests := []struct {
		name string
		do   func(call *Call)
		want time.Duration // 0: at once
	}{
		{"nothing was sent", func(*Call) {}, 0},
		{"call has ended", func(c *Call) { _ = c.Sending(); c.Answered("job_1"); c.End() }, 0},
		{"refused", func(c *Call) { _ = c.Sending(); c.Withdrawn() }, 0},
		{"call ends later", func(c *Call) {
			_ = c.Sending()
			time.AfterFunc(300*time.Millisecond, c.End)
		}, 300 * time.Millisecond},
		{"answered, but not to the CLI", func(c *Call) { _ = c.Sending(); c.Answered("job_1") }, time.Second},
		{"never answered", func(c *Call) { _ = c.Sending() }, time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t)
			synctest.Test(t, func(t *testing.T) {
				j := openQuiet(t, dir)
				test.do(j.Begin(t.Context(), key))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				j.Drain(ctx)
				if took := time.Since(start); took < test.want || took > test.want+10*time.Millisecond {
					t.Errorf("it took %s, want %s", took, test.want)
				}
				crash(t, j)
			})
		})
	}
}

func TestPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	dir := folder(t)
	j := openQuiet(t, dir)
	note(j, key, "", "job_1")
	crash(t, j)
	j = openQuiet(t, dir)
	if _, id := take(t, j, key); id != "job_1" { // makes the claim's file
		t.Fatalf("took %s", id)
	}
	defer crash(t, j)
	seen := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", d.Name(), info.Mode().Perm(), want)
		}
		seen++
		return err
	})
	if err != nil || seen != 4 {
		t.Errorf("%d files looked at, %v", seen, err)
	}
}

// Red without: the second attempt of open.
func TestFolder_goes_while_the_file_is_made(t *testing.T) {
	dir := folder(t)
	ctx, cancel := context.WithCancel(t.Context())
	var removed atomic.Int64
	var remover sync.WaitGroup
	remover.Go(func() {
		for ctx.Err() == nil {
			if removed.Load() < 5 && os.Remove(dir) == nil { // it fails while anything is in it
				removed.Add(1)
			}
			runtime.Gosched()
		}
	})
	for range 100 {
		removed.Store(0)
		j := openQuiet(t, dir)
		if _, err := j.open(); err != nil {
			t.Error(err)
			break
		}
		_ = j.lock.Close()
		name := strings.TrimSuffix(j.lock.Path(), lockSuffix)
		remove(name)
		sweep(name)
	}
	cancel()
	remover.Wait()
}

// Red without: the silence about files that are gone when they are looked at.
func TestTwo_journals_in_one_folder(t *testing.T) {
	dir := folder(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 30 {
				j := openQuiet(t, dir)
				call := note(j, key, "", "job_1")
				if j.HasLeft() {
					t.Error("a living process's request is given away")
				}
				call.End()
				j.Close()
			}
		})
	}
	all.Wait()
	wantFiles(t, dir, 0)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A POST whose CLI is gone is not sent: the next run may not know of it. Red
// without the look at the parent, or before the note is on disk.
func TestSending_without_a_CLI(t *testing.T) {
	j := openQuiet(t, folder(t))
	file := countSyncs(t, j)
	call := j.Begin(t.Context(), key)
	if err := call.Sending(); err != nil {
		t.Errorf("with a CLI: %v", err)
	}
	j.parent = -1
	if err := call.Sending(); !errors.Is(err, errNoCLI) || file.syncs.Load() != 2 {
		t.Errorf("without a CLI: %v after %d syncs, want errNoCLI after 2", err, file.syncs.Load())
	}
	call.Withdrawn()
	j.Close()
}
