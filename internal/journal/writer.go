// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// logFile is what a writer needs of an *os.File.
type logFile interface {
	io.WriteCloser
	Sync() error
}

// entry is one line of a journal.
type entry struct {
	Number int    `json:"n"`              // which call of the process
	Key    Key    `json:"k,omitempty"`    // which request
	JobID  string `json:"id,omitempty"`   // the answer; empty: not answered yet
	At     int64  `json:"at,omitempty"`   // Unix seconds
	Gone   bool   `json:"gone,omitempty"` // without effect, adopted or reported: forget it
}

func (e entry) at() time.Time { return time.Unix(e.At, 0) }

// writer appends lines to one file. Callers that come while the disk is busy
// share the next write and sync.
type writer struct {
	mu   sync.Mutex // guards next; never held over I/O
	next *batch
	disk sync.Mutex // whoever holds it writes
	file logFile
	err  error // the file could not be opened
	torn bool  // the last write has failed and may have left half a line
}

type batch struct {
	lines []byte
	sync  bool
	done  bool
	err   error
}

func (w *writer) append(e entry, sync bool, open func() (logFile, error)) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	w.mu.Lock()
	if w.next == nil {
		w.next = new(batch)
	}
	mine := w.next
	mine.lines = append(append(mine.lines, line...), '\n')
	mine.sync = mine.sync || sync
	w.mu.Unlock()

	w.disk.Lock()
	defer w.disk.Unlock()
	if mine.done { // another caller has taken it along
		return mine.err
	}
	w.mu.Lock()
	w.next = nil
	w.mu.Unlock()
	mine.done, mine.err = true, w.flush(mine, open)
	return mine.err
}

func (w *writer) flush(b *batch, open func() (logFile, error)) error {
	if w.file == nil && w.err == nil {
		w.file, w.err = open()
	}
	if w.err != nil {
		return w.err
	}
	lines := b.lines
	if w.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	_, err := w.file.Write(lines)
	if w.torn = err != nil; w.torn {
		return err
	}
	if b.sync {
		return w.file.Sync()
	}
	return nil
}

// close must be called by whoever holds the disk. The next line opens a new file.
func (w *writer) close() {
	_ = w.file.Close()
	w.file, w.torn = nil, false
}
