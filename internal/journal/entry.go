// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// opTimeout bounds each access to a store. A POST whose record took longer is not sent.
	opTimeout = 10 * time.Second
	// maxAge is how long an entry is kept for a later run.
	maxAge = 30 * 24 * time.Hour
	// clockError is how much earlier a later request may seem to have been sent:
	// a bucket's clock has a resolution of one second.
	clockError = 2 * time.Second
	// maxEntry bounds what is read as an entry; they are about 400 bytes long.
	maxEntry = 64 << 10

	suffix       = ".json"
	createPrefix = "create-"
)

// Key identifies a request by a hash, so that an entry does not reveal the request.
type Key string

func newKey(kind string, parts ...string) Key { return Key(kind + hash(parts...)) }

func hash(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fixed := sha256.Sum256([]byte(part)) // of fixed width, so that "a", "bc" differs from "ab", "c"
		sum.Write(fixed[:])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// newID returns a random id for an entry.
func newID() string { return strings.ToLower(rand.Text()) }

// entry is the record of one POST. Only its writer changes it; others read or delete it.
type entry struct {
	Key      Key    `json:"key"`
	Scope    string `json:"scope"` // a hash
	Project  string `json:"project"`
	JobID    string `json:"job,omitempty"`      // of a message: its recipient; of a create: the new job, once accepted
	Accepted bool   `json:"accepted,omitempty"` // the service accepted it
	Taken    bool   `json:"taken,omitempty"`    // by Run, from an earlier one
	Sender   Sender `json:"sender"`
	Run      Run    `json:"run"`            // of the sender, or the one that took it over
	SentAt   int64  `json:"sent,omitempty"` // in ms, by the store's clock; missing in a file's first line: the time of the file
	Wait     int64  `json:"wait,omitempty"` // of a pending one: ms from then on in which a response can arrive

	id     string
	damage error // why it cannot be read; SentAt is then the time of the file or object
	own    bool  // accepted, and sent or taken over by this process
}

func (e *entry) isCreate() bool { return strings.HasPrefix(string(e.Key), createPrefix) }

// isFor reports whether the entry is about the job. The job of a pending create is unknown.
func (e *entry) isFor(jobID string) bool { return jobID != "" && e.JobID == jobID }

func (e *entry) sent() time.Time { return time.UnixMilli(e.SentAt) }

var errDamaged = errors.New("not a journal entry")

// decodeEntry reads the last complete line.
func decodeEntry(id string, text []byte) (*entry, error) {
	var last *entry
	for line := range bytes.Lines(text) {
		e := &entry{id: id}
		if json.Unmarshal(line, e) == nil && e.Key != "" && e.Run != "" && (e.JobID != "" || !e.Accepted) {
			last = e
		}
	}
	if last == nil {
		return nil, fmt.Errorf("%s: %w", id+suffix, errDamaged)
	}
	return last, nil
}

func validID(id string) bool {
	return len(id) == len(newIDExample) && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// newIDExample has the length of every id.
const newIDExample = "aaaaaaaaaaaaaaaaaaaaaaaaaa"

// store keeps entries. Every method is bounded by its context.
type store interface {
	// String names the store in errors.
	String() string
	// where names the file or object of an entry.
	where(id string) string
	// load returns all entries, including damaged ones. With an error it returns those that could be read.
	load(ctx context.Context) ([]*entry, error)
	// write stores the entry durably, whether or not it exists, and sets SentAt if that is zero.
	write(ctx context.Context, e *entry) error
	// read returns the current entry, or nil if it no longer exists.
	read(ctx context.Context, id string) (*entry, error)
	// remove deletes an entry. existed is false if another process has just deleted it,
	// as far as the store can tell.
	remove(ctx context.Context, id string) (existed bool, _ error)
	// now is the time by the store's clock.
	now() time.Time
	// pollInterval is how often a pending entry is read while it is waited for.
	pollInterval() time.Duration
}

// Error reports that a journal could not be used.
type Error struct {
	Store string // where the journal is kept
	Op    string // what was tried: "read", "written", "cleaned up"
	Err   error
}

// Error says what failed, and in which store.
func (e *Error) Error() string {
	return fmt.Sprintf("the journal in %s could not be %s: %v", e.Store, e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
