// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
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

// Grace is how long GETs may show what was before a request: no job after a create,
// the earlier final status after a message.
const Grace = 60 * time.Second

// MayBeStale reports whether a status may still be the one from before a message that was
// accepted at that time, as long as no GET since then has shown an unfinished one.
func MayBeStale(status Status, message time.Time) bool {
	return status.Terminal() && time.Since(message) < Grace
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
	fields, err := decodeObject(body, "id", "status", "source", "model", "prLink", "createdAt", "archivedAt")
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
	if source, err := decodeObject(fields["source"], "repository", "ref"); err == nil {
		job.Source = &Source{Repository: key.text(source["repository"]), Ref: key.text(source["ref"])}
	}
	return job, nil
}

// decodeObject returns the members with these names of one JSON object. The names match exactly,
// unlike those of a struct.
func decodeObject(body []byte, names ...string) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	text := json.NewDecoder(bytes.NewReader(body))
	isWhole := eachMember(text, func(name string, value json.RawMessage) {
		if slices.Contains(names, name) {
			fields[name] = bytes.Clone(value)
		}
	})
	if _, err := text.Token(); !isWhole || !errors.Is(err, io.EOF) {
		return nil, errNoObject
	}
	return fields, nil
}

// maxMembers is how many members an object may have. A job record has a handful, and each takes
// memory while it is read.
const maxMembers = 1000

// eachMember passes on the members of the next JSON object, up to where it is no JSON or has too
// many. It reports whether that was all of it. The callee must not keep the value.
func eachMember(text *json.Decoder, member func(name string, value json.RawMessage)) (isWhole bool) {
	if open, err := text.Token(); err != nil || open != json.Delim('{') {
		return false
	}
	var value json.RawMessage
	for i := 0; text.More(); i++ {
		token, err := text.Token()
		name, isText := token.(string)
		if err != nil || !isText || i == maxMembers || text.Decode(&value) != nil {
			return false
		}
		member(name, value)
	}
	_, err := text.Token()
	return err == nil
}
