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
	parent int // the CLI's process
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
	j := &Journal{dir: dir, parent: os.Getppid(), report: report, calls: map[int]bool{}, lost: make(chan struct{})}
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
