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

// Entry is the record of one POST. Only its writer changes it; others read or delete it.
type Entry struct {
	Project  string     `json:"project"`
	JobID    string     `json:"job,omitempty"`      // of a message: its recipient; of a create: the new job, once accepted
	Accepted bool       `json:"accepted,omitempty"` // the service accepted it
	Sender   cli.Sender `json:"sender"`
	SentAt   time.Time  `json:"sent"`              // by the sender's clock; of a claim, when it was made
	Wait     int64      `json:"wait,omitempty"`    // of a pending one: ms in which a response can arrive; 0 confirms a claim
	Settles  []string   `json:"settles,omitempty"` // of an accepted message: names of those that were there when it was sent
}

// MaxWait is how long after it was sent a response can arrive.
func (e *Entry) MaxWait() time.Duration { return time.Duration(e.Wait) * time.Millisecond }

// decode reads an entry. A damaged one may be about any request, so it is one without a response.
func decode(text []byte, written time.Time) *Entry {
	e := new(Entry)
	if json.Unmarshal(text, e) != nil || e.Accepted && e.JobID == "" {
		return &Entry{SentAt: written}
	}
	return e
}
