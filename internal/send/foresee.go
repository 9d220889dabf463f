// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package send

import (
	"context"
	"errors"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
)

// What an apply does because of a verdict, and what a plan makes of that, is decided here alone.

// Sends reports whether an apply sends something, if this is what a plan foresees.
func (r Result) Sends() bool { return r == Accepted }

// Stops reports whether an apply waits, or fails until something changes, if this is what a plan
// foresees.
func (r Result) Stops() bool {
	return r == EarlierUnknown || r == Running || r == OtherJob || r == Unreadable || r == Waiting
}

// Counts reports whether a message counts as sent, or may do so once the apply has waited.
func (r Result) Counts() bool { return r == AlreadySent || r == EarlierUnknown || r == Waiting }

// results are what an apply does because of a verdict: the one place that says so. Of Beside, the job of
// the record may change it.
func results(v journal.Verdict) Result {
	return [...]Result{
		journal.Send: Accepted, journal.Wait: Waiting, journal.Adopt: Adopted, journal.Beside: Accepted, journal.UnknownCreate: EarlierUnknown,
		journal.AlreadySent: AlreadySent, journal.UnknownMessage: EarlierUnknown, journal.OtherJob: OtherJob,
	}[v]
}

// Foresee tells a plan what its apply would do: its Result is what that would return, and Accepted if it
// would send. Without a record, and with an error of the journal, it would.
func (s *Sender) Foresee(ctx context.Context, r Request) (Outcome, error) {
	verdict, record, err := s.Journal.Peek(ctx, r.Wanted)
	return s.foresee(ctx, r, verdict, record, s.Client.ReadJob), err
}

func (s *Sender) foresee(
	ctx context.Context, r Request, verdict journal.Verdict, record *journal.Record,
	read func(ctx context.Context, projectID, jobID string) (*agentapi.Job, error),
) Outcome {
	out := Outcome{Result: results(verdict), Record: record}
	switch {
	case verdict != journal.Wait && r.Replaces != "" && record != nil && record.JobID == r.Replaces:
		return Outcome{Result: Accepted, Record: record} // the Delete frees the name
	case verdict != journal.Beside:
		return out
	}
	job, err := read(ctx, record.Project, record.JobID)
	hasArguments := record.HasArguments(r.Wanted)
	isActive := err == nil && !job.Status.Terminal()
	isPerhaps := err == nil && record.LastMessage() != nil && agentapi.MayBeStale(job.Status, record.Last.SentAt)
	switch {
	case errors.Is(err, agentapi.ErrNotFound):
	case err != nil && hasArguments:
		out.Result, out.Err = Unreadable, err
	case (isActive || isPerhaps) && hasArguments: // a name has no two running jobs with the same arguments
		out.Result = Running
	case err != nil, isActive, hasArguments && job.Status == agentapi.StatusCompleted:
		out.Beside = record
	}
	return out
}
