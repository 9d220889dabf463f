// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package send

import (
	"context"
	"errors"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
)

// What a request does because of the record of its name is decided here alone: an apply does it, and a
// plan foresees it.

// Stops reports whether an apply waits, or fails until something changes, if this is what a plan
// foresees.
func (r Result) Stops() bool {
	return r == EarlierUnknown || r == Running || r == OtherJob || r == Unreadable || r == Waiting
}

// MayBeSent reports whether another run has sent the message, or may have done so.
func (r Result) MayBeSent() bool { return r == AlreadySent || r == EarlierUnknown || r == Waiting }

// Foresee tells a plan what its apply would do: its Result is what that would return, and MaySend if it
// would send, as it would without a record, or with an error of the journal.
func (s *Sender) Foresee(ctx context.Context, r Request) (Outcome, error) {
	record, err := s.Journal.Peek(ctx, r.Project, r.Name)
	return s.judge(ctx, r, record, s.Client.ReadJob), err
}

// reader reads a job.
type reader func(ctx context.Context, projectID, jobID string) (*agentapi.Job, error)

// judge decides what a request does because of the record of its name. It does not depend on the CLI's
// state, but for the job that a plan replaces.
func (s *Sender) judge(ctx context.Context, r Request, record *journal.Record, read reader) Outcome {
	isGivenUp := record.Last != nil && s.Journal.IsGivenUp(record.Last.ID)
	out := Outcome{Record: record}
	switch {
	case record.Claim != nil:
		out.Result = Waiting
	case r.Replaces != "" && r.Replaces == record.JobID: // the Delete frees the name
		out.Result = MaySend
	case r.Kind() == Message:
		out.Result = judgeMessage(r, record, isGivenUp)
	// What a Delete of this run has left may be the same object at another address, so it is not free.
	case record.Last == nil, isGivenUp, record.IsFreed() && !s.Journal.IsLeftOrKeptByThisRun(record):
		out.Result = MaySend
	case record.IsUnknownCreate():
		out.Result = EarlierUnknown
	case record.HasArguments(r.Wanted) && (r.IsPromptUnknown || record.HasPrompt(r.Prompt)):
		out.Result = Adopted
	default:
		job, err := read(ctx, record.Project, record.JobID)
		judgeBeside(r, job, err, &out)
	}
	if out.Result == EarlierUnknown {
		out.JobID = r.Recipient // a message may have arrived
	}
	return out
}

func judgeMessage(r Request, record *journal.Record, isGivenUp bool) Result {
	isOther := record.JobID != r.Recipient
	switch {
	case record.Last == nil, record.IsFreed() && isOther:
		return MaySend // the record was lost, or is about an earlier job: the state has the job of the message
	case isOther && !isGivenUp:
		return OtherJob
	case isOther, r.IsPromptUnknown, !record.HasPrompt(r.Prompt):
		return MaySend
	case record.Last.Unknown:
		return EarlierUnknown
	}
	return AlreadySent
}

// judgeBeside decides about a create whose name has a job with another prompt or other arguments. It
// sends, unless that job may be running with the same arguments.
func judgeBeside(r Request, job *agentapi.Job, err error, out *Outcome) {
	record := out.Record
	hasArguments := record.HasArguments(r.Wanted)
	isActive := err == nil && !job.Status.Terminal()
	mayStillRun := err == nil && record.LastMessage() != nil && agentapi.MayBeStale(job.Status, record.Last.SentAt)
	out.Result = MaySend
	switch {
	case errors.Is(err, agentapi.ErrNotFound):
	case err != nil && hasArguments:
		out.Result, out.Err = Unreadable, err
	case (isActive || mayStillRun) && hasArguments: // a name has no two running jobs with the same arguments
		out.Result = Running
	case err != nil, isActive, hasArguments && job.Status == agentapi.StatusCompleted:
		out.Beside = record
	}
}
