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

	Body agentapi.PostBody // what is sent; of a message, the prompt alone
	// RetryFailed: a job of an earlier run that failed is not adopted.
	RetryFailed bool
	// Replaces is the job in the state that a plan replaces by the create. It may be empty.
	Replaces string
	// PlannedJob: the plan promises that nothing is sent, because this job already has the prompt. Of a
	// create, it is the job to adopt; of a message, its own job, which is closed, so that only another run
	// can have sent it. It is empty without such a promise.
	PlannedJob string
}

// Kind is that of the request.
func (r Request) Kind() Kind {
	if r.Recipient != "" {
		return Message
	}
	return Create
}

// Result says what became of a request.
type Result int

const (
	// lookAgain is no result yet: the record of the name must be read, perhaps again.
	lookAgain Result = iota
	// MaySend: nothing is in the way of the request, so an apply sends it next. It is no outcome.
	MaySend

	// What became of our own request:

	// Accepted: the service accepted the request, and Job is its response.
	Accepted
	// Unknown: it was sent, and Err is why there is no usable response.
	Unknown
	// NoEffect: it was not sent or was refused, because of Err.
	NoEffect
	// BeyondLimit: it was not sent. Err is a *LimitError.
	BeyondLimit
	// JournalUnusable: it was not sent. Err is why the journal does not show whether an earlier run sent it.
	JournalUnusable
	// PlanOutdated: it was not sent, because the promise of PlannedJob does not hold any more.
	PlanOutdated

	// What the record of the name says, so that nothing was sent, and a plan foresees it:

	// Adopted: an earlier run had sent the create, and Job is as it is now.
	Adopted
	// AlreadySent: an earlier run had sent the message, and Job is as it is now.
	AlreadySent
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
	// Waiting: another run's request may still get a response. An apply waits, so only a plan has this.
	Waiting
)

// Outcome is what became of a request.
type Outcome struct {
	Result Result
	Job    *agentapi.Job   // if the service has accepted the request
	JobID  string          // of the job that has the prompt, or may have it, and that the state must know
	Record *journal.Record // of the name, if the record has decided, or if the outcome of our own request is unknown
	Err    error
	// Beside is the record of the earlier job of the name, if a create starts another one although that is
	// active, cannot be read, or has completed and only its prompt differs.
	Beside       *journal.Record
	BecameClosed bool // set by the caller: the job has finished, and accepts no messages from now on
}

// Sender sends the requests of one provider configuration.
type Sender struct {
	Client  *agentapi.Client
	Journal *journal.Journal // that of resources
	Limits  Limits
}

// Operation is one call of the CLI that sends a request, or does what the record of its name says.
type Operation struct {
	Request Request

	sender   *Sender
	call     *journal.Call // records what becomes of the request
	recorder recorder
}

// Begin starts an operation. ctx is the call's context, without a deadline of the provider.
func (s *Sender) Begin(ctx context.Context, r Request) *Operation {
	j := s.Journal
	if r.Name == "" {
		j = journal.InMemory()
	}
	call := j.Begin(ctx, r.Wanted)
	return &Operation{Request: r, sender: s, call: call, recorder: recorder{Call: call, limits: &s.Limits, kind: r.Kind()}}
}

// Holder is what the private state keeps for Delete: see journal.Record.
func (o *Operation) Holder() string { return o.call.Holder() }

// Problem is why the journal does not show, so far, what became of the request.
func (o *Operation) Problem() error { return o.call.Problem() }

// Assign records that the name of the message has its job, which a person has imported, and sends nothing.
// It returns the Holder.
func (s *Sender) Assign(ctx context.Context, r Request) (holder string, err error) {
	call := s.Begin(ctx, r).call
	err = call.Assign(ctx)
	return call.Holder(), err
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
				out = Outcome{Result: lookAgain} // the name may have a job to adopt, which counts for no limit
			}
		default:
			return out
		}
	}
}

// post sends the request, and classifies what became of it.
func (o *Operation) post(ctx context.Context) Outcome {
	if err := o.call.Prove(); err != nil {
		return Outcome{Result: NoEffect, Err: err}
	}
	r, client := o.Request, o.sender.Client
	if r.Kind() == Message {
		return o.outcome(client.SendMessage(ctx, r.Project, r.Recipient, r.Body.Prompt, &o.recorder))
	}
	return o.outcome(client.CreateJob(ctx, r.Project, r.Body, &o.recorder))
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
	return Outcome{Result: Unknown, Err: err, JobID: o.Request.Recipient, Record: o.call.Record()}
}

// recorder is the Call of an operation as the client uses it: a claim also counts within the limit.
type recorder struct {
	*journal.Call

	limits    *Limits
	kind      Kind
	isCounted bool // the client calls Claim for each attempt, and a request counts once
}

var _ agentapi.Recorder = (*recorder)(nil)

// Claim claims the name of the request, and counts it within the limit.
func (r *recorder) Claim() error {
	if r.isCounted {
		return r.Call.Claim()
	}
	if err := r.limits.check(r.kind); err != nil { // nothing is written
		return err
	}
	if err := r.Call.Claim(); err != nil { // the name may have a job to adopt
		return err
	}
	if err := r.limits.take(r.kind); err != nil { // others were counted meanwhile
		r.Withdrawn()
		return err
	}
	r.isCounted = true
	return nil
}

// follow does what the record of the name says. The result is MaySend if the request is to be sent.
func (o *Operation) follow(ctx context.Context) Outcome {
	record, err := o.call.Look(ctx)
	if err != nil {
		return Outcome{Result: JournalUnusable, Err: err}
	}
	out, planned := o.sender.judge(ctx, o.Request, record, o.sender.Client.ReadJobPatiently), o.Request.PlannedJob
	switch out.Result {
	case AlreadySent:
		out = o.readJob(ctx, AlreadySent, record)
	case Adopted:
		if planned != "" && planned != record.JobID {
			return Outcome{Result: PlanOutdated}
		}
		out = o.adopt(ctx, record)
	}
	if out.Result == MaySend && planned != "" { // the plan promises that nothing is sent
		return Outcome{Result: PlanOutdated}
	}
	return out
}

// adopt adopts the job of a create, and then reads it: a Delete of this apply may come between the two,
// and must find the adoption. If the read fails, the next apply adopts the job.
func (o *Operation) adopt(ctx context.Context, record *journal.Record) Outcome {
	err := o.call.Adopt() //nolint:contextcheck // it has the context of Begin, without our deadline
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
	job, err := o.sender.Client.ReadJobPatiently(ctx, o.Request.Project, record.JobID)
	if err != nil {
		return Outcome{Result: Unreadable, Record: record, Err: err}
	}
	return Outcome{Result: result, Job: job, JobID: job.ID, Record: record}
}
