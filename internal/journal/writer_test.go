// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// counted counts the syncs of a file, the first of which waits for release.
type counted struct {
	logFile
	syncs   atomic.Int64
	release chan struct{} // nil: nothing waits
	err     error         // of every sync
}

func (c *counted) Sync() error {
	if c.syncs.Add(1) == 1 && c.release != nil {
		<-c.release
	}
	return errors.Join(c.err, c.logFile.Sync())
}

// countSyncs opens the journal's file and counts its syncs.
func countSyncs(t testing.TB, j *Journal) *counted {
	t.Helper()
	file, err := j.open()
	if err != nil {
		t.Fatal(err)
	}
	c := &counted{logFile: file}
	j.writer.file = c
	return c
}

// Who comes while the disk is busy shares the next sync, and learns what became
// of it: red without next.
func TestAppend_shares_syncs(t *testing.T) {
	const callers = 100
	for name, err := range map[string]error{"written": nil, "failed": io.ErrShortWrite} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			j := openQuiet(t, dir)
			file := countSyncs(t, j)
			file.release, file.err = make(chan struct{}), err
			var all sync.WaitGroup
			defer all.Wait()
			released := sync.OnceFunc(func() { close(file.release) })
			defer released()
			one := func(n int) {
				got := j.writer.append(entry{Number: n, Key: key}, true, nil)
				if !errors.Is(got, err) {
					t.Errorf("append returned %v, want %v", got, err)
				}
			}
			all.Go(func() { one(1) })
			waitFor(func() bool { return file.syncs.Load() == 1 })
			for n := 2; n <= callers; n++ {
				all.Go(func() { one(n) })
			}
			waiting := func(want int) {
				waitFor(func() bool {
					j.writer.mu.Lock()
					defer j.writer.mu.Unlock()
					return j.writer.next != nil && strings.Count(string(j.writer.next.lines), "\n") == want
				})
			}
			waiting(callers - 1)
			all.Go(func() { // who needs no sync takes none from the others
				if got := j.writer.append(entry{Number: 1, Gone: true}, false, nil); !errors.Is(got, err) {
					t.Errorf("append returned %v, want %v", got, err)
				}
			})
			waiting(callers)
			released()
			all.Wait()
			if got := file.syncs.Load(); got != 2 {
				t.Errorf("%d syncs for %d callers, want 2", got, callers)
			}
			if got := strings.Count(text(t, dir), "\n"); got != callers+1 {
				t.Errorf("%d lines, want %d", got, callers+1)
			}
			crash(t, j)
		})
	}
}

// waitFor has no limit of its own: that of the test binary shows where it hangs.
func waitFor(done func() bool) {
	for !done() {
		time.Sleep(time.Millisecond)
	}
}

func TestWhat_is_synced(t *testing.T) {
	j := openQuiet(t, folder(t))
	file := countSyncs(t, j)
	call := j.Begin(t.Context(), key)
	for _, step := range []struct {
		name string
		do   func()
		want int64
	}{
		{"Sending", func() { _ = call.Sending() }, 1},
		{"Withdrawn", call.Withdrawn, 1}, // lost, it costs a report at most
		{"Answered", func() { call.Answered("job_1") }, 2},
		{"End", call.End, 2},
	} {
		step.do()
		if got := file.syncs.Load(); got != step.want {
			t.Errorf("%d syncs after %s, want %d", got, step.name, step.want)
		}
	}
	j.Close()
}

// Every entry of 1,000 calls at once is there, for far fewer syncs than entries.
func TestThousand_calls_at_once(t *testing.T) {
	const calls = 1000
	dir := folder(t)
	j := openQuiet(t, dir)
	file := countSyncs(t, j)
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			call := j.Begin(t.Context(), CreateKey(fmt.Sprint(i)))
			defer call.End()
			_ = call.Sending()
			if i%3 > 0 {
				call.Answered(fmt.Sprintf("job_%d", i))
			}
			if i%3 == 2 {
				call.Withdrawn()
			}
		})
	}
	all.Wait()
	crash(t, j)

	want := map[Key]string{}
	for i := range calls {
		switch i % 3 {
		case 0:
			want[CreateKey(fmt.Sprint(i))] = ""
		case 1:
			want[CreateKey(fmt.Sprint(i))] = fmt.Sprintf("job_%d", i)
		}
	}
	found, damaged := readEntries([]byte(text(t, dir)))
	got := map[Key]string{}
	for _, r := range found {
		got[r.Key] = r.JobID
	}
	if diff := cmp.Diff(want, got); diff != "" || damaged > 0 || len(found) != len(want) {
		t.Errorf("%d requests, %d damaged lines (-want +got):\n%s", len(found), damaged, diff)
	}
	t.Logf("%d syncs", file.syncs.Load())
	if syncs := file.syncs.Load(); syncs > calls/2 {
		t.Errorf("%d syncs for %d calls", syncs, calls)
	}
}

// A file that cannot be opened is not tried again for every call.
func TestAppend_opens_once(t *testing.T) {
	var w writer
	opened := 0
	for range 3 {
		err := w.append(entry{Number: 1}, true, func() (logFile, error) { opened++; return nil, os.ErrPermission })
		if !errors.Is(err, os.ErrPermission) {
			t.Error(err)
		}
	}
	if opened != 1 {
		t.Errorf("opened %d times", opened)
	}
}

// Nothing but hashes and job ids is in the folder.
func TestFile_holds_no_secret(t *testing.T) {
	const canaryKey, canaryPrompt, project = "mint_CANARY7f3a9c", "CANARY prompt", "proj_CANARY"
	dir := folder(t)
	j := openQuiet(t, dir)
	parts := []string{canaryKey, canaryPrompt, project}
	note(j, CreateKey(parts...), "", "job_1")
	note(j, MessageKey(parts...), "", "withdrawn", "")
	crash(t, j)
	j = openQuiet(t, dir)
	r, _ := take(t, j, CreateKey(parts...))
	j.Settle(r)
	if r, _ = take(t, j, MessageKey(parts...)); r == nil {
		t.Fatal("nothing is left")
	}
	defer crash(t, j)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 { // entries, lock, claim
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		read, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if all := file.Name() + string(read); strings.Contains(all, "CANARY") || strings.Contains(all, "prompt") {
			t.Errorf("%s: %s", file.Name(), read)
		}
	}
}
