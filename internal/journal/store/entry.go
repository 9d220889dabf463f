// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"encoding/json"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
)

const (
	suffix = ".json"
	// maxEntry bounds what is read as an entry; they are about 300 bytes long.
	maxEntry = 64 << 10
)

// Status is what the record of a request says about its outcome.
type Status string

// The outcomes of a request.
const (
	Pending  Status = "pending"  // a response can arrive until the deadline
	Accepted Status = "accepted" // the service accepted it
	Unknown  Status = "unknown"  // there is no response, and none can arrive any more
)

// Entry is the record of one POST. Only its writer changes it; others read or delete it.
type Entry struct {
	Project  string     `json:"project"`
	Status   Status     `json:"status"`
	JobID    string     `json:"job,omitempty"`    // of a message: its recipient; of a create: the new job, once accepted
	JobName  string     `json:"name,omitempty"`   // of a create, if it has one
	Prompt   string     `json:"prompt,omitempty"` // its hash, of a create with a name
	Sender   cli.Sender `json:"sender"`
	SentAt   time.Time  `json:"sent"`              // by the sender's clock; of a job taken over, when that was
	Deadline time.Time  `json:"deadline,omitzero"` // of a pending request, by the same clock
	Marked   bool       `json:"marked,omitempty"`  // of a pending request: MarkSent comes before it is sent
	Before   []string   `json:"before,omitempty"`  // of an accepted message: ids of those to the job that were there before
}

// decode reads an entry. A damaged one may be about any request, so it is one without a response.
func decode(text []byte, written time.Time) *Entry {
	e := new(Entry)
	isWhole := json.Unmarshal(text, e) == nil
	switch {
	case isWhole && e.Status == Pending, isWhole && e.Status == Unknown, isWhole && e.Status == Accepted && e.JobID != "":
		return e
	}
	return &Entry{Status: Unknown, SentAt: written}
}
