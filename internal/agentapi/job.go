// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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

// Job is the service's record of a job. A nil pointer is a field that was null,
// missing, or not of the contract's type; the texts are as received.
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
func decodeJob(body []byte) (*Job, error) {
	fields, err := decodeObject(body)
	if err != nil {
		return nil, err
	}
	id := optionalString(fields["id"])
	if id == nil || *id == "" {
		return nil, errNoID
	}
	if !ValidID(*id) {
		return nil, fmt.Errorf("%w: %s", errNoID, escape.Printable(*id))
	}
	job := &Job{
		ID:         *id,
		Model:      optionalString(fields["model"]),
		PRLink:     optionalString(fields["prLink"]),
		CreatedAt:  optionalString(fields["createdAt"]),
		ArchivedAt: optionalString(fields["archivedAt"]),
	}
	if status := optionalString(fields["status"]); status != nil {
		job.Status = Status(*status)
	}
	if source, err := decodeObject(fields["source"]); err == nil {
		job.Source = &Source{
			Repository: optionalString(source["repository"]),
			Ref:        optionalString(source["ref"]),
		}
	}
	return job, nil
}

// decodeObject splits one JSON object into its members. Their names match exactly, unlike
// those of a struct.
func decodeObject(body []byte) (fields map[string]json.RawMessage, _ error) {
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		return nil, errNoObject
	}
	return fields, nil
}

// idsIn returns the valid ids at the top of the JSON objects in a text, up to where it is no JSON.
func idsIn(text []byte) (ids []string) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
			return ids
		}
		for decoder.More() {
			var value json.RawMessage
			name, err := decoder.Token()
			if err != nil || decoder.Decode(&value) != nil {
				return ids
			}
			if id := optionalString(value); name == "id" && id != nil && ValidID(*id) && !slices.Contains(ids, *id) {
				ids = append(ids, *id)
			}
		}
		if _, err := decoder.Token(); err != nil {
			return ids
		}
	}
}

func optionalString(raw json.RawMessage) *string {
	var text *string
	if len(raw) == 0 || json.Unmarshal(raw, &text) != nil {
		return nil
	}
	return text
}
