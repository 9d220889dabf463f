// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

// Marks in the private state: what a later plan must know and no attribute shows.
const (
	// markMessaged: when a message was accepted whose run of the job has not been seen to start or end.
	markMessaged = "messaged"
	// markMissing: a warning has reported that the service does not know the job.
	markMissing = "missing"
	// markUnconfirmed: a message was sent and nothing showed its effect.
	markUnconfirmed = "unconfirmed"
	// markPrompt: the hash of the last write-only prompt sent to the job.
	markPrompt = "prompt"
	// markPlanned: the hash of the write-only prompt that the plan has seen, for its apply.
	markPlanned = "planned"
	// markIgnored: the plan has no prompt to compare, because of ignore_changes.
	markIgnored = "ignored"
	// markJournal: what the state says about the journal; its value is a journal.Ref.
	markJournal = "journal"
)

// privateState is the framework's private state, in a plan or a response.
type privateState interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func isMarked(ctx context.Context, p privateState, key string) bool {
	value, _ := p.GetKey(ctx, key)
	return len(value) > 0
}

func mark(ctx context.Context, p privateState, key string) { setMark(ctx, p, key, true) }

func unmark(ctx context.Context, p privateState, key string) { p.SetKey(ctx, key, nil) }

// setMark gives a mark a value.
func setMark(ctx context.Context, p privateState, key string, value any) {
	if text, err := json.Marshal(value); err == nil {
		p.SetKey(ctx, key, text)
	}
}

// recordRef records what the state says about the journal.
func recordRef(ctx context.Context, p privateState, operation *send.Operation) {
	if ref := operation.Ref(getMark[journal.Ref](ctx, p, markJournal)); len(ref.Entries) > 0 {
		setMark(ctx, p, markJournal, ref)
	}
}

// getMark returns the value of a mark, or the zero value without one.
func getMark[T any](ctx context.Context, p privateState, key string) (value T) {
	if text, _ := p.GetKey(ctx, key); len(text) > 0 {
		_ = json.Unmarshal(text, &value) // nothing but setMark writes it
	}
	return value
}

// updateMarks updates the marks after a refresh.
func updateMarks(ctx context.Context, private privateState, job *jobModel, record *agentapi.Job) {
	unmark(ctx, private, markMissing)
	if job.ended() && record.Status.Unfinished() {
		unmark(ctx, private, markUnconfirmed) // the message has arrived after all
	}
	messaged := getMark[time.Time](ctx, private, markMessaged)
	switch {
	case messaged.IsZero():
	case wait.MayBeStale(record.Status, messaged):
		record.Status = agentapi.StatusActive // this status may be the one from before the message
	default:
		unmark(ctx, private, markMessaged)
	}
}
