// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package journal remembers, across a crash, which job was started for which
// request. It is for crashes only: a process that ends cleanly leaves no file.
//
// Each process writes one file, which holds hashes and job ids, never a prompt
// or a key. The file is locked while the process lives; a file that nobody
// locks is what a crash has left.
package journal

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

const (
	fileSuffix = ".jsonl"
	lockSuffix = ".lock"
	// openAttempts bounds how often a folder that goes away is made anew.
	openAttempts = 10
)

// Key stands for one request: a hash, so that the file tells nothing of it.
type Key string

// createPrefix tells keys of creates from those of messages.
const createPrefix = "create-"

// CreateKey stands for a create that all the parts tell from others.
func CreateKey(parts ...string) Key { return Key(createPrefix + hash(parts)) }

// MessageKey stands for a message that all the parts tell from others.
func MessageKey(parts ...string) Key { return Key("message-" + hash(parts)) }

func hash(parts []string) string {
	sum := sha256.New()
	for _, part := range parts {
		fixed := sha256.Sum256([]byte(part)) // of one width, so that parts cannot run together
		sum.Write(fixed[:])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Journal is the crash journal of one process. A nil *Journal keeps nothing.
// Its methods may be called at the same time; none of them fails: a journal
// that cannot be written or read is reported once, and costs nothing else.
type Journal struct {
	dir    string
	report func(error)
	once   sync.Once // the report

	writer writer
	mu     sync.Mutex
	lock   *flock.Flock // of the file; nil: there is none
	calls  map[int]bool // by entry number: POSTs whose call has not been answered
	number int
	lost   chan struct{} // closed when an answer did not reach the CLI: the file stays
	stop   bool          // the CLI has asked us to stop

	left left
}

// Open returns the journal kept in the folder dir. It touches nothing yet.
// report is called at most once, with the first thing that goes wrong.
func Open(dir string, report func(error)) *Journal {
	j := &Journal{dir: dir, report: report, calls: map[int]bool{}, lost: make(chan struct{})}
	j.left = left{journal: j, files: map[string]*leftFile{}, dealt: map[answer]bool{}, tolerated: map[string]bool{}}
	return j
}

func (j *Journal) failed(err error) { j.once.Do(func() { j.report(err) }) }

// open starts this process's file at its first POST.
func (j *Journal) open() (logFile, error) {
	for attempt := 1; ; attempt++ {
		file, err := j.create()
		if err == nil {
			return file, nil
		}
		// Another process that ends may just have removed the empty folder.
		if !errors.Is(err, fs.ErrNotExist) || attempt == openAttempts {
			return nil, err
		}
	}
}

// create makes the file, which nobody may see before it is locked.
func (j *Journal) create() (*os.File, error) {
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return nil, err
	}
	name := filepath.Join(j.dir, strings.ToLower(rand.Text()))
	lock := flock.New(name + lockSuffix)
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = fs.ErrExist
	}
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(name+fileSuffix, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
	}
	if err != nil {
		_ = lock.Close()
		sweep(name)
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lock = lock
	return file, nil
}

// Call follows one call of the CLI that may POST.
type Call struct {
	journal *Journal
	key     Key
	number  int
	ctx     context.Context
}

// Begin starts to follow a call. ctx is the call's own context, without any
// deadline of ours: when it ends before the call does, the CLI is gone.
func (j *Journal) Begin(ctx context.Context, key Key) *Call {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.number++
	return &Call{journal: j, key: key, number: j.number, ctx: ctx}
}

// Sending notes that a POST is about to be sent. It returns once that is on disk.
func (c *Call) Sending() {
	if c == nil {
		return
	}
	c.pending()
	c.write(entry{Key: c.key, Number: c.number, At: time.Now().Unix()}, true)
}

// Answered notes the job that the POST has started or reached. It returns once
// that is on disk.
func (c *Call) Answered(jobID string) {
	if c == nil {
		return
	}
	c.pending()
	c.write(entry{Key: c.key, Number: c.number, At: time.Now().Unix(), JobID: jobID}, true)
}

// Withdrawn notes that the POST had no effect: it was not sent, or refused.
func (c *Call) Withdrawn() {
	if c == nil {
		return
	}
	c.journal.mu.Lock()
	delete(c.journal.calls, c.number)
	c.journal.mu.Unlock()
	c.write(entry{Number: c.number, Gone: true}, false)
}

func (c *Call) pending() {
	c.journal.mu.Lock()
	defer c.journal.mu.Unlock()
	c.journal.calls[c.number] = true
}

func (c *Call) write(e entry, sync bool) {
	if err := c.journal.writer.append(e, sync, c.journal.open); err != nil {
		c.journal.failed(err)
	}
}

// End notes that the call returns to the CLI. Use it deferred.
func (c *Call) End() {
	if c == nil {
		return
	}
	c.journal.mu.Lock()
	defer c.journal.mu.Unlock()
	if c.ctx.Err() != nil && !c.journal.stop && c.journal.calls[c.number] && !c.journal.hasLost() {
		close(c.journal.lost) // the connection is gone, and with it what this call returns
	}
	delete(c.journal.calls, c.number)
}

// Lost is closed once the answer of a call that had posted could not reach the CLI.
func (j *Journal) Lost() <-chan struct{} {
	if j == nil {
		return nil
	}
	return j.lost
}

func (j *Journal) hasLost() bool {
	select {
	case <-j.lost:
		return true
	default:
		return false
	}
}

// Stopping notes that the CLI has asked the calls under way to end: they will
// be answered although their contexts are cancelled.
func (j *Journal) Stopping() {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stop = true
}

// Drain waits until no call that has posted is under way, or ctx ends.
func (j *Journal) Drain(ctx context.Context) {
	if j == nil {
		return
	}
	for {
		j.mu.Lock()
		under := len(j.calls)
		j.mu.Unlock()
		if under == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Close removes the file when every call that had posted was answered; else it
// stays for the next process, locked until this one has ended, so that an
// answer that still comes is noted. A POST after Close is noted in a new file.
func (j *Journal) Close() {
	if j == nil {
		return
	}
	j.writer.disk.Lock() // before mu, as a write does that opens the file
	defer j.writer.disk.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lock == nil || len(j.calls) > 0 || j.hasLost() {
		return
	}
	name := strings.TrimSuffix(j.lock.Path(), lockSuffix)
	j.writer.close()
	remove(name) // while it is locked: nobody is to read it now
	_ = j.lock.Close()
	j.lock = nil
	sweep(name)
}
