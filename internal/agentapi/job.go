// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

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
	errNoObject  = errors.New("the response is not a JSON object")
	errCut       = errors.New("the response ends before the job record is complete")
	errTrailing  = errors.New("the response continues after the job record")
	errDuplicate = errors.New("the response contains a field twice")
	errNoID      = errors.New("the response contains no usable job id")
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
		return nil, &badIDError{*id}
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

// badIDError is an id that is not allowed in a path.
type badIDError struct{ id string }

func (e *badIDError) Error() string { return errNoID.Error() + ": " + escape.Printable(e.id) }

func (e *badIDError) Unwrap() error { return errNoID }

// decodeObject splits one JSON object into its members. encoding/json alone
// would take the last of two ids and match names without regard to case.
func decodeObject(body []byte) (map[string]json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errNoObject
	}
	fields := make(map[string]json.RawMessage, 8)
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, endOfInput(err)
		}
		name, _ := token.(string)
		if _, twice := fields[name]; twice {
			return nil, errDuplicate
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, endOfInput(err)
		}
		fields[name] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, endOfInput(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errTrailing
	}
	return fields, nil
}

// endOfInput names the end of the input, which the decoder reports in two ways.
func endOfInput(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

func optionalString(raw json.RawMessage) *string {
	var text *string
	if len(raw) == 0 || json.Unmarshal(raw, &text) != nil {
		return nil
	}
	return text
}
