// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
)

// Status is the status of a job, as the service spells it.
type Status string

// The statuses of the service's contract. Others are kept as received and are not
// terminal.
const (
	StatusActive    Status = "active"
	StatusCompleted Status = "completed"
	StatusArchived  Status = "archived"
	StatusFailed    Status = "failed"
)

// Terminal reports whether the job has finished.
func (s Status) Terminal() bool {
	return s == StatusCompleted || s == StatusArchived || s == StatusFailed
}

// Unfinished reports whether the job is at work: any status that is not terminal, but not
// a missing one.
func (s Status) Unfinished() bool { return s != "" && !s.Terminal() }

// StaleFor is how long GETs may show the earlier final status after a message.
const StaleFor = 60 * time.Second

// MayBeStale reports whether a status may still be the one from before a message that was
// accepted at that time, as long as no GET since then has shown an unfinished one.
func MayBeStale(status Status, message time.Time) bool {
	return status.Terminal() && time.Since(message) < StaleFor
}

// Job is the service's record of a job. A nil pointer is a field that was null, missing, empty, or
// not of the contract's type; the texts are as received, but for white space around them and the
// key.
type Job struct {
	ID         string
	Status     Status // empty when the response had none
	Source     *Source
	Model      *string
	PRLink     *string
	CreatedAt  *string // ISO 8601, UTC
	ArchivedAt *string // ISO 8601, UTC
}

// Source is where the agent works.
type Source struct {
	Repository *string
	Ref        *string // for example a branch
}

var (
	errNoObject = errors.New("the response is not one complete JSON object")
	errNoID     = errors.New("the response contains no usable job id")
)

// decodeJob reads a job record. Only the id must be valid, because a job without it
// is lost; every other field is nil unless it has the contract's type. Nothing is
// coerced.
func decodeJob(body []byte, key Key) (*Job, error) {
	fields, err := decodeObject(body)
	if err != nil {
		return nil, err
	}
	id := key.text(fields["id"])
	if id == nil {
		return nil, errNoID
	}
	if !ValidID(*id) {
		return nil, fmt.Errorf(`%w: "%s"`, errNoID, escape.Printable(*id))
	}
	job := &Job{
		ID:         *id,
		Model:      key.text(fields["model"]),
		PRLink:     key.text(fields["prLink"]),
		CreatedAt:  key.text(fields["createdAt"]),
		ArchivedAt: key.text(fields["archivedAt"]),
	}
	if status := key.text(fields["status"]); status != nil {
		job.Status = Status(*status)
	}
	if source, err := decodeObject(fields["source"]); err == nil {
		job.Source = &Source{Repository: key.text(source["repository"]), Ref: key.text(source["ref"])}
	}
	return job, nil
}

// decodeObject returns the members of one JSON object. The names match exactly, unlike those of a struct.
func decodeObject(text []byte) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || members == nil { // null is no object
		return nil, errNoObject
	}
	return members, nil
}
