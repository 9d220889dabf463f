// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package send sends creates and messages: it claims the name, counts them within the limit, and
// posts the request, or else does what the record of the name says. A request that the service may
// have accepted is never repeated here.
package send

import (
	"context"
	"errors"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
)

// Kind is a kind of request.
type Kind int

// The requests that the service accepts.
const (
	Create Kind = iota
	Message
)

// Request is a prompt and where it goes. Without a name, as for an action, it is not recorded.
type Request struct {
	journal.Wanted

	Body agentapi.NewJob // what is sent; of a message, the prompt alone
	// RetryFailed: a job of an earlier run that failed is not adopted.
	RetryFailed bool
	// Replaces is the job in the state that a plan replaces by the create. It may be empty.
	Replaces string
	// PlannedJob is the job that already has the prompt, as the plan says: the apply sends nothing. It is
	// what a create adopts, or a closed job that an earlier run has sent the message. It may be empty.
	PlannedJob string
}

// Kind is that of the request.
func (r Request) Kind() Kind {
	if r.JobID != "" {
		return Message
	}
	return Create
}

// Result says what became of a request.
type Result int

// lookAgain is no result yet: the record of the name must be read, perhaps again.
const lookAgain Result = 0

// The results. Nothing was sent, unless they say otherwise.
const (
	// MaySend: nothing is in the way of the request, so an apply sends it next. It is no outcome.
	MaySend Result = iota + 1
	// Accepted: the service accepted the request, and Job is its response.
	Accepted
	// Adopted: an earlier run had sent the create, and Job is as it is now.
	Adopted
	// AlreadySent: an earlier run had sent the message, and Job is as it is now.
	AlreadySent
	// NoEffect: it was not sent or was refused, because of Err.
	NoEffect
	// Unknown: it was sent, and Err is why there is no usable response.
	Unknown
	// EarlierUnknown: an earlier run sent it, or a create with the same name, and its outcome is
	// unknown.
	EarlierUnknown
	// Running: the name has a job with the same arguments, which was last sent another prompt and is
	// still running.
	Running
	// OtherJob: the name has another job than the one that the message is for.
	OtherJob
	// Unreadable: an earlier run sent it, and Err is why its job cannot be read.
	Unreadable
	// JournalUnusable: Err is why the journal does not show whether an earlier run sent it.
	JournalUnusable
	// BeyondLimit: Err is a *LimitError.
	BeyondLimit
	// NotAdopted: the create was planned to adopt a job, which is not that of the name any more.
	NotAdopted
	// Closed: the job cannot accept messages, and no earlier run has sent this one.
	Closed
	// Waiting is said in a plan only: another run's request may still get a response.
	Waiting
)

// Outcome is what became of a request.
type Outcome struct {
	Result       Result
	Job          *agentapi.Job   // if the service has accepted the request
	JobID        string          // of the job that has the prompt, or may have it, and that the state must know
	Record       *journal.Record // of the name, if the record has decided, or if the outcome of our own request is unknown
	Err          error
	Beside       *journal.Record // of the name, if a create starts a job beside one that a person may still want
	BecameClosed bool            // because of refusals like this one, the job accepts no messages from now on
}

// Sender sends the requests of one provider configuration.
type Sender struct {
	Client  *agentapi.Client
	Journal *journal.Journal // that of resources
	Limits  Limits
}

// Operation is one call of the CLI that sends a request. The client tells it what it does with the
// request. The embedded Call records that, and Claim also counts it within the limit.
type Operation struct {
	*journal.Call

	Request Request

	sender        *Sender
	isWithinLimit bool // the request was counted
}

var _ agentapi.Recorder = (*Operation)(nil)

// Begin starts an operation. ctx is the call's context, without a deadline of the provider.
func (s *Sender) Begin(ctx context.Context, r Request) *Operation {
	j := s.Journal
	if r.Name == "" {
		j = journal.InMemory()
	}
	return &Operation{Call: j.Begin(ctx, r.Wanted), Request: r, sender: s}
}

// Send sends the request, unless the record of its name says otherwise.
func (o *Operation) Send(ctx context.Context) Outcome {
	var out Outcome
	if o.Request.Kind() == Create && o.Request.PlannedJob == "" {
		// A create writes its claim first, and reads only if the store refuses that: it saves a read, and
		// without the right to list, a store denies a read of what does not exist.
		out.Result = MaySend
	}
	for hasLooked := false; ; {
		switch out.Result {
		case lookAgain:
			out, hasLooked = o.follow(ctx), true
		case MaySend:
			beside := out.Beside
			out = o.post(ctx)
			switch {
			case out.Result == Accepted, out.Result == Unknown:
				out.Beside = beside
			case out.Result == BeyondLimit && !hasLooked:
				out = Outcome{} // the name may have a job to adopt, which counts for no limit
			}
		default:
			return out
		}
	}
}

// post sends the request, and classifies what became of it.
func (o *Operation) post(ctx context.Context) Outcome {
	if err := o.Prove(); err != nil {
		return Outcome{Result: NoEffect, Err: err}
	}
	r, client := o.Request, o.sender.Client
	if r.Kind() == Message {
		return o.outcome(client.SendMessage(ctx, r.Project, r.JobID, r.Body.Prompt, o))
	}
	return o.outcome(client.CreateJob(ctx, r.Project, r.Body, o))
}

// outcome classifies what became of a POST. An error of an unexpected kind says nothing about it.
func (o *Operation) outcome(job *agentapi.Job, err error) Outcome {
	_, isBeyond := errors.AsType[*LimitError](err)
	switch {
	case err == nil:
		return Outcome{Result: Accepted, Job: job, JobID: job.ID}
	case errors.Is(err, journal.ErrTaken):
		return Outcome{Result: lookAgain}
	case isBeyond:
		return Outcome{Result: BeyondLimit, Err: err}
	case errors.Is(err, agentapi.ErrNotSent), errors.Is(err, agentapi.ErrRefused):
		return Outcome{Result: NoEffect, Err: err}
	}
	return Outcome{Result: Unknown, Err: err, JobID: o.Request.JobID, Record: o.Record()}
}

// Claim claims the name of the request, and counts it within the limit.
func (o *Operation) Claim() error {
	limits, kind := &o.sender.Limits, o.Request.Kind()
	if o.isWithinLimit {
		return o.Call.Claim()
	}
	if err := limits.take(kind, 0); err != nil { // nothing is written
		return err
	}
	if err := o.Call.Claim(); err != nil { // the name may have a job to adopt
		return err
	}
	if err := limits.take(kind, 1); err != nil { // others were counted meanwhile
		o.Withdrawn()
		return err
	}
	o.isWithinLimit = true
	return nil
}

// follow does what the record of the name says. The result is MaySend if the request is to be sent.
func (o *Operation) follow(ctx context.Context) Outcome {
	record, err := o.Look(ctx)
	if err != nil {
		return Outcome{Result: JournalUnusable, Err: err}
	}
	out, planned := o.sender.judge(ctx, o.Request, record, o.sender.Client.FindJob), o.Request.PlannedJob
	switch {
	case out.Result == Adopted && planned != "" && planned != record.JobID:
		return Outcome{Result: NotAdopted}
	case out.Result == Adopted:
		out = o.adopt(ctx, record)
	case out.Result == AlreadySent:
		return o.readJob(ctx, AlreadySent, record)
	}
	switch {
	case out.Result != MaySend || planned == "":
		return out
	case o.Request.Kind() == Message:
		return Outcome{Result: Closed}
	}
	return Outcome{Result: NotAdopted}
}

// adopt adopts the job of a create, and then reads it: a Delete of this apply may come between the two,
// and must find the adoption. If the read fails, the next apply adopts the job.
func (o *Operation) adopt(ctx context.Context, record *journal.Record) Outcome {
	err := o.Adopt() //nolint:contextcheck // it has the context of Begin, without our deadline
	switch {
	case errors.Is(err, journal.ErrTaken):
		return Outcome{Result: lookAgain}
	case err != nil:
		out := Outcome{Result: JournalUnusable, Err: err}
		if record.IsFree() { // a Delete of this run has left the job, so only the state will know it
			out.JobID = record.JobID
		}
		return out
	}
	out := o.readJob(ctx, Adopted, record)
	switch {
	case out.Err != nil && !o.sender.Journal.IsDurable():
		out.JobID = record.JobID // only the state will know it
	case out.Err == nil && out.Job.Status == agentapi.StatusFailed && o.Request.RetryFailed:
		return Outcome{Result: MaySend}
	}
	return out
}

// readJob reads the job of a record, which may be new, and not be found yet.
func (o *Operation) readJob(ctx context.Context, result Result, record *journal.Record) Outcome {
	job, err := o.sender.Client.FindJob(ctx, o.Request.Project, record.JobID)
	if err != nil {
		return Outcome{Result: Unreadable, Record: record, Err: err}
	}
	return Outcome{Result: result, Job: job, JobID: job.ID, Record: record}
}
