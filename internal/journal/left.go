// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

const (
	// orphanGrace is how long a request that a living process has noted too is
	// held back: the process may have lost its CLI and be about to end.
	orphanGrace = 3 * time.Second
	// answerGrace is how long while that process has no answer yet.
	answerGrace = 2 * time.Minute
)

// Left is a request that a process noted before it crashed.
type Left struct {
	JobID string    // empty: no answer had come
	At    time.Time // when it was noted
	Key   Key

	file   *leftFile
	number int
	taken  bool
	claim  *flock.Flock // while it is taken: keeps other living processes from it
}

// answer is what a request has led to. Two files name the same when a process
// crashed after it had noted a job that it adopted, before it settled that one.
type answer struct {
	key   Key
	jobID string
}

func (l *Left) answer() answer { return answer{l.Key, l.JobID} }

// left are the requests that crashed processes have noted.
type left struct {
	journal   *Journal
	mu        sync.Mutex
	files     map[string]*leftFile // of dead processes, by name
	dealt     map[answer]bool      // jobs that a caller has taken
	tolerated map[string]bool      // files of processes that live beside us
}

// Take returns a request that a crashed process has noted under key, answered
// ones first, or nil. Nobody else gets it, in no process: the caller must
// Settle it, or Return it.
func (j *Journal) Take(ctx context.Context, key Key) *Left {
	if j == nil {
		return nil
	}
	l := &j.left
	l.waitForOrphans(ctx, key)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scan()
	found := l.where(func(r *Left) bool {
		return r.Key == key && !r.taken && (r.JobID == "" || !l.dealt[r.answer()])
	})
	slices.SortFunc(found, func(a, b *Left) int {
		switch {
		case a.JobID != "" && b.JobID == "":
			return -1
		case a.JobID == "" && b.JobID != "":
			return 1
		}
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.file.name, b.file.name), a.number-b.number)
	})
	for _, r := range found {
		if l.claim(r) {
			return r
		}
	}
	return nil
}

// claim makes a request ours, unless another living process has it or is done with it.
func (l *left) claim(r *Left) bool {
	lock := flock.New(fmt.Sprintf("%s-%d%s", r.file.name, r.number, lockSuffix))
	locked, err := lock.TryLock()
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		l.journal.failed(err) // such as a folder that cannot be written: go on alone
	case err == nil && !locked:
		return false
	}
	if err := r.file.refresh(); err != nil {
		l.journal.failed(err)
	}
	if r.file.left[r.number] == nil {
		_ = lock.Close()
		_ = os.Remove(lock.Path())
		sweep(r.file.name)
		return false
	}
	r.taken, r.claim = true, lock
	l.dealt[r.answer()] = true
	return true
}

// Return gives a request back that could not be dealt with now.
func (j *Journal) Return(r *Left) {
	j.left.mu.Lock()
	defer j.left.mu.Unlock()
	delete(j.left.dealt, r.answer())
	_ = r.claim.Close() // and not removed: another process may be about to lock it
	r.taken = false
}

// Settle forgets a request for good. It returns once that is on disk.
func (j *Journal) Settle(r *Left) {
	j.left.mu.Lock()
	defer j.left.mu.Unlock()
	j.left.forget(true, func(other *Left) bool {
		return other == r || r.JobID != "" && other.answer() == r.answer()
	})
	_ = r.claim.Close()
	_ = os.Remove(r.claim.Path())
	sweep(r.file.name)
}

// HasLeft reports whether a crashed process has left any request.
func (j *Journal) HasLeft() bool {
	if j == nil {
		return false
	}
	j.left.mu.Lock()
	defer j.left.mu.Unlock()
	j.left.scan()
	return len(j.left.where(func(r *Left) bool { return !r.taken })) > 0
}

// Seen forgets all requests noted under the keys or for the job: the state
// holds their outcome.
func (j *Journal) Seen(jobID string, keys ...Key) {
	if j == nil {
		return
	}
	j.left.mu.Lock()
	defer j.left.mu.Unlock()
	j.left.scan()
	j.left.forget(false, func(r *Left) bool { // not synced: lost, it is seen again
		created := jobID != "" && r.JobID == jobID && strings.HasPrefix(string(r.Key), createPrefix)
		return !r.taken && (created || slices.Contains(keys, r.Key))
	})
}

// where returns the requests that are not settled and match.
func (l *left) where(match func(*Left) bool) []*Left {
	var found []*Left
	for _, file := range l.files {
		for _, r := range file.left {
			if match(r) {
				found = append(found, r)
			}
		}
	}
	return found
}

// forget settles the requests that match.
func (l *left) forget(sync bool, match func(*Left) bool) {
	byFile := map[*leftFile][]*Left{}
	for _, r := range l.where(match) {
		byFile[r.file] = append(byFile[r.file], r)
	}
	for file, settled := range byFile {
		if err := file.settle(settled, sync); err != nil {
			l.journal.failed(err)
		}
	}
}

// waitForOrphans holds a request back while another living process has noted
// it too: that one may have lost its CLI and be about to end. A process that
// goes on living is tolerated from then on.
func (l *left) waitForOrphans(ctx context.Context, key Key) {
	start := time.Now()
	for quiet := start; ; {
		l.mu.Lock()
		l.scan()
		alive, unanswered := l.alive(key)
		if unanswered && time.Since(start) < answerGrace {
			quiet = time.Now()
		}
		if time.Since(quiet) > orphanGrace {
			for _, name := range alive {
				l.tolerated[name] = true
			}
			alive = nil
		}
		l.mu.Unlock()
		if len(alive) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}
