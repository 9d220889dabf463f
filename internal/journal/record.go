// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/cli"
)

// Record is what is known of a name: its job, and the last request for it. A record is only written
// over the one that its writer has read.
type Record struct {
	Format  int     `json:"format"`
	Project string  `json:"project"`
	Name    string  `json:"name"`
	JobID   string  `json:"job,omitempty"`     // that the name has, or had before it was released
	Fate    Fate    `json:"fate,omitempty"`    // of the name, once the object with the job was removed; empty while it is there
	FateBy  cli.Run `json:"fate_by,omitempty"` // the run whose Delete has decided that
	// Holder is random, and also in the private state of the object with the job. An object whose state
	// has another one does not free the name.
	Holder string `json:"holder,omitempty"`
	Last   *Entry `json:"last,omitempty"`  // the last request that the service accepted, or may have accepted
	Claim  *Entry `json:"claim,omitempty"` // the request that a run sends
	Write  string `json:"write"`           // random: who has lost the response to a write recognizes it
}

// Fate is what becomes of a name when the object with its job is removed.
type Fate string

// The fates.
const (
	// Release: the name is free, and its next create sends.
	Release Fate = "released"
	// Leave: the name is free, but a create of the same run may still adopt the job for the same request:
	// perhaps only the address has changed, as when a count shifts.
	Leave Fate = "left"
	// Keep: the name keeps the job, and the next create does what the record says: it perhaps wants the
	// same.
	Keep Fate = "kept"
)

// Entry is a request in a record: a create or a message.
type Entry struct {
	ID        string `json:"id"`            // random, and never used again; empty in memory
	Recipient string `json:"job,omitempty"` // the job that a message is for; empty for a create
	// Prompt is a hash, salted with the id. A Delete that restores a lost record knows only the hash that
	// the state has, which is salted with the job's id.
	Prompt    string        `json:"prompt"`
	Arguments string        `json:"arguments"`         // hash of triggers, and of what else tells creates apart beside the prompt
	Unknown   bool          `json:"unknown,omitempty"` // no response shows its outcome
	Sender    cli.ProcessID `json:"sender"`
	SentAt    time.Time     `json:"sent"`              // by the sender's clock
	Deadline  time.Time     `json:"deadline,omitzero"` // of a claim: no response can arrive later, by the same clock
	Unsent    bool          `json:"unsent,omitempty"`  // of a claim: the sender records once more before it sends anything
}

// Wanted is a request that a resource wants to send for its name, or plans to send.
type Wanted struct {
	Project, Name string
	Recipient     string // the job that a message is for; empty for a create
	Arguments     string // what tells creates apart, beside the prompt, as text
	Prompt        string // as it is compared; see IsPromptUnknown
	// IsPromptUnknown: the plan does not know the prompt yet.
	IsPromptUnknown bool
}

const (
	format   = 1
	idLength = 16
)

func newID() string { return strings.ToLower(rand.Text())[:idLength] }

// ValidID reports whether a request can have the id.
func ValidID(id string) bool {
	return len(id) == idLength && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// decode reads the record of a key. A damaged one may be about any request, so it is an error. hasIDs:
// its requests have ids, as they do but in memory.
func decode(text []byte, at string, hasIDs bool) (*Record, error) {
	r := new(Record)
	err := json.Unmarshal(text, r)
	switch {
	case err == nil && r.Format > format:
		return nil, fmt.Errorf("a later version of the provider has written the record of %.200q: use that version", r.Name)
	case err != nil, r.Format < format, key(r.Project, r.Name) != at, !r.hasValidIDs(hasIDs):
		return nil, fmt.Errorf("the record is damaged: restore it, or delete it if you know that the name has no job")
	}
	return r, nil
}

// hasValidIDs reports whether all ids can be such: they become paths of requests, and parts of
// commands to paste.
func (r *Record) hasValidIDs(hasIDs bool) bool {
	isJob := func(id string) bool { return id == "" || agentapi.ValidID(id) }
	isValid := func(e *Entry) bool {
		return e == nil || isJob(e.Recipient) && (ValidID(e.ID) || e.ID == "" && !hasIDs)
	}
	return isJob(r.JobID) && isValid(r.Last) && isValid(r.Claim)
}

// key is the key of the record of a name: readable, with a hash that tells names apart even where
// case does not count.
func key(project, name string) string {
	readable := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return readable[:min(len(readable), 40)] + "-" + Hash(project, name)
}

// Hash returns 100 bits of a hash, as letters and digits.
func Hash(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fixed := sha256.Sum256([]byte(part)) // of fixed width, so that "a", "bc" differs from "ab", "c"
		sum.Write(fixed[:])
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum.Sum(nil)))[:20]
}

// HasPrompt reports whether the prompt is that of the last request, which there must be.
func (r *Record) HasPrompt(prompt string) bool {
	return r.Last.Prompt == Hash(r.Last.ID, prompt) || r.Last.Prompt == PromptHash(r.JobID, prompt)
}

// HasArguments reports whether the last request has the arguments of a wanted one, such as triggers.
func (r *Record) HasArguments(w Wanted) bool { return r.Last.Arguments == Hash(w.Arguments) }

// PromptHash is a hash by which a state knows a prompt that it does not show. It is salted with the
// job's id, so that equal prompts of two jobs have different ones.
func PromptHash(jobID, prompt string) string { return Hash(jobID, prompt) }

// LastMessage is the last request if that was a message, or nil; also nil for a nil record.
func (r *Record) LastMessage() *Entry {
	if r == nil || r.Last == nil || !r.Last.IsMessage() {
		return nil
	}
	return r.Last
}

// IsFree reports whether no request counts for the name any more: a Delete has freed it, or it never
// had one.
func (r *Record) IsFree() bool { return r.IsFreed() || r.Last == nil }

// IsFreed reports whether a Delete has freed the name.
func (r *Record) IsFreed() bool { return r.Fate == Release || r.Fate == Leave }

// IsUnknownCreate reports whether the outcome of a create is unknown: the service may have a job
// that no record names.
func (r *Record) IsUnknownCreate() bool { return !r.IsFree() && r.Last.Unknown && !r.Last.IsMessage() }

// IsMessage reports whether it is a message, or else a create.
func (e *Entry) IsMessage() bool { return e.Recipient != "" }

// stamp gives a record a new Write, by which its writer recognizes it. It must not be changed
// afterwards, because persist may still be writing it in the background.
func (r *Record) stamp() { r.Format, r.Write = format, newID() }

// withUnknown is the record once no response to its claim can arrive any more: the claim becomes
// the last request, with an unknown outcome.
func (r *Record) withUnknown() *Record {
	s := *r
	s.setLast(r.Claim, r.Claim.Recipient)
	s.Last.Unknown = true
	return &s
}

// setLast makes a request the last one. The job is empty after a create without a response.
func (r *Record) setLast(entry *Entry, job string) {
	last := *entry
	last.Deadline, last.Unsent = time.Time{}, false
	switch {
	case r.JobID != job && !entry.IsMessage():
		r.Holder = newID()
	case r.JobID != job, r.IsFreed() && entry.IsMessage():
		r.Holder = "" // the record does not know who holds the job of the message
	}
	r.Last, r.JobID, r.Claim, r.Fate, r.FateBy = &last, job, nil, "", ""
}
