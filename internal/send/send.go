// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package send sends creates and messages: it looks into the journal, takes over what an
// earlier run has sent, checks the limit, records the request, and posts it. A request
// that the service may have accepted is never repeated here.
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

// Request is a prompt and where it goes.
type Request struct {
	Kind      Kind
	ProjectID string
	JobID     string // the recipient of a message
	Prompt    string
	// Key identifies equal requests of later runs. Without one, as for an action, the
	// request is neither recorded nor taken over.
	Key journal.Key
	// KeepFailed takes a failed job over instead of starting another.
	KeepFailed bool
}

// Result says what became of a request.
type Result int

// The results. Nothing was sent, unless they say otherwise.
const (
	// Sent: the service accepted the request, and Job is its response.
	Sent Result = iota + 1
	// TakenOver: an earlier run had sent it, and Job is as it is now.
	TakenOver
	// NoEffect: it was not sent or was refused, because of Err.
	NoEffect
	// Unknown: it was sent, and Err is why there is no usable response.
	Unknown
	// EarlierUnknown: an earlier run sent it, and its outcome is unknown.
	EarlierUnknown
	// Unreadable: an earlier run sent it, and Err is why its job cannot be read.
	Unreadable
	// JournalUnusable: Err is why the journal does not show whether an earlier run sent it.
	JournalUnusable
	// BeyondLimit: Err is a *LimitError.
	BeyondLimit
	// NotOurs: this run took the job over, and sends it no message. Only "terraform test"
	// does that, and the job does not belong to the test.
	NotOurs
)

// Outcome is what became of a request.
type Outcome struct {
	Result  Result
	Job     *agentapi.Job   // if the service has accepted the request
	Orphan  *journal.Orphan // the request of the earlier run, or our own with unknown outcome; may be nil
	Ref     journal.Ref     // the entry that the state makes superfluous
	Err     error
	Problem error // of the journal, which does not show this outcome
}

// Sender sends the requests of one provider configuration.
type Sender struct {
	Client  *agentapi.Client
	Journal *journal.Journal // nil: none is kept
	Limits  Limits
}

// Operation is one call of the CLI that sends a request.
type Operation struct {
	Request Request
	sender  *Sender
	call    *journal.Call
}

// Begin starts an operation. ctx is the call's context, without a deadline of the
// provider. Defer End.
func (s *Sender) Begin(ctx context.Context, r Request) *Operation {
	o := &Operation{sender: s, Request: r}
	if r.Key != "" {
		o.call = s.Journal.Begin(ctx, journal.Request{Key: r.Key, ProjectID: r.ProjectID, JobID: r.JobID})
	}
	return o
}

// End records that the call returns to the CLI.
func (o *Operation) End() { o.call.End() }

// Send sends the request, unless an earlier run has sent it.
func (o *Operation) Send(ctx context.Context) Outcome {
	if o.Request.Key != "" {
		if earlier := o.takeOver(ctx); earlier.Result != 0 {
			return earlier
		}
	}
	if err := o.sender.Limits.send(o.Request.Kind); err != nil {
		return Outcome{Result: BeyondLimit, Err: err}
	}
	job, err := o.post(ctx)
	out := Outcome{Result: resultOf(err), Job: job, Ref: o.call.Ref(), Err: err, Problem: o.call.Problem()}
	switch out.Result {
	case NoEffect:
		out.Ref = journal.Ref{} // it does not settle earlier messages
	case Unknown:
		out.Orphan = o.call.Orphan()
	}
	return out
}

// resultOf classifies the error of a POST. One of an unexpected kind says nothing about
// the outcome.
func resultOf(err error) Result {
	switch {
	case err == nil:
		return Sent
	case errors.Is(err, agentapi.ErrNotSent), errors.Is(err, agentapi.ErrRefused):
		return NoEffect
	}
	return Unknown
}

func (o *Operation) post(ctx context.Context) (*agentapi.Job, error) {
	r := o.Request
	if r.Kind == Message {
		return o.sender.Client.SendMessage(ctx, r.ProjectID, r.JobID, r.Prompt, o.call)
	}
	return o.sender.Client.CreateJob(ctx, r.ProjectID, r.Prompt, o.call)
}

// takeOver looks for the request in the journal. The zero Outcome means that no earlier
// run has sent it, or that it must be sent again.
func (o *Operation) takeOver(ctx context.Context) Outcome {
	s, r := o.sender, o.Request
	for {
		orphan, err := s.Journal.Find(ctx, r.Key)
		switch {
		case err != nil:
			return Outcome{Result: JournalUnusable, Err: err}
		case orphan == nil && r.Kind == Message && s.Journal.TookOver(ctx, r.JobID):
			return Outcome{Result: NotOurs}
		case orphan == nil:
			return Outcome{}
		case orphan.Unknown && (r.Kind == Message || !orphan.Listed):
			return Outcome{Result: EarlierUnknown, Orphan: orphan, Ref: orphan.Ref}
		}
		forget := orphan.Unknown // listed: a person has decided
		var job *agentapi.Job
		if !forget {
			job, err = s.Client.ReadJob(ctx, r.ProjectID, orphan.JobID)
			forget = err == nil && r.Kind == Create && job.Status == agentapi.StatusFailed && !r.KeepFailed ||
				errors.Is(err, agentapi.ErrNotFound) && orphan.Listed
		}
		switch {
		case forget:
			if err := s.Journal.Remove(ctx, orphan); err != nil {
				return Outcome{Result: JournalUnusable, Err: err}
			}
			continue
		case err != nil:
			return Outcome{Result: Unreadable, Orphan: orphan, Err: err}
		}
		if taken, ref, err := s.Journal.Take(ctx, orphan); taken {
			return Outcome{Result: TakenOver, Job: job, Orphan: orphan, Ref: ref, Problem: err}
		}
	}
}
