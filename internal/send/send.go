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
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
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
	// Name is that of a create, or empty. With one, equal prompts have equal hashes, which the journal keeps.
	Name, PromptHash string
	// Key identifies equal requests of later runs. Without one, as for an action, the
	// request is neither recorded nor taken over.
	Key journal.Key
	// Closed: the job cannot accept messages, so that only one that an earlier run sent counts.
	Closed bool
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
	// OtherPrompt: an earlier run sent a create with the same name and another prompt, which was accepted.
	OtherPrompt
	// Unreadable: an earlier run sent it, and Err is why its job cannot be read.
	Unreadable
	// JournalUnusable: Err is why the journal does not show whether an earlier run sent it.
	JournalUnusable
	// BeyondLimit: Err is a *LimitError.
	BeyondLimit
	// Closed: the job cannot accept messages, and no earlier run has sent this one.
	Closed
)

// Outcome is what became of a request.
type Outcome struct {
	Result  Result
	Job     *agentapi.Job    // if the service has accepted the request
	Earlier *journal.Earlier // the request of the earlier run, or our own with unknown outcome; may be nil
	Err     error
	Problem error // of the journal, which does not show this outcome
}

// Sender sends the requests of one provider configuration.
type Sender struct {
	Client  *agentapi.Client
	Journal *journal.Journal // that of resources
	Limits  Limits
}

// Operation is one call of the CLI that sends a request.
type Operation struct {
	*journal.Call

	Request Request
	sender  *Sender
	counted bool
}

// Begin starts an operation. ctx is the call's context, without a deadline of the
// provider. Defer End.
func (s *Sender) Begin(ctx context.Context, r Request) *Operation {
	j := s.Journal
	if r.Key == "" {
		j = journal.Discard()
	}
	call := j.Begin(ctx, journal.Request{Key: r.Key, ProjectID: r.ProjectID, JobID: r.JobID, JobName: r.Name, Prompt: r.PromptHash})
	return &Operation{Call: call, Request: r, sender: s}
}

// Send sends the request, unless another run has sent it.
func (o *Operation) Send(ctx context.Context) Outcome {
	for {
		if !o.Request.Closed {
			job, err := o.post(ctx)
			if !errors.Is(err, journal.ErrEarlier) {
				return o.outcome(job, err)
			}
		}
		earlier, err := o.Earlier(ctx)
		switch {
		case err != nil:
			return Outcome{Result: JournalUnusable, Err: err}
		case earlier == nil && o.Request.Closed:
			return Outcome{Result: Closed}
		case earlier == nil:
			continue
		}
		if out, isDue := o.takeOver(ctx, earlier); !isDue {
			return out
		}
	}
}

func (o *Operation) post(ctx context.Context) (*agentapi.Job, error) {
	r := o.Request
	if r.Kind == Message {
		return o.sender.Client.SendMessage(ctx, r.ProjectID, r.JobID, r.Prompt, o)
	}
	return o.sender.Client.CreateJob(ctx, r.ProjectID, r.Prompt, o)
}

// Sending counts the request once it may be sent, so that one that is taken over does not count.
func (o *Operation) Sending() error {
	if err := o.Call.Sending(); err != nil || o.counted {
		return err
	}
	if err := o.sender.Limits.send(o.Request.Kind); err != nil {
		o.Withdrawn()
		return err
	}
	o.counted = true
	return nil
}

// outcome classifies what became of a POST. An error of an unexpected kind says nothing about it.
func (o *Operation) outcome(job *agentapi.Job, err error) Outcome {
	limit, isBeyond := errors.AsType[*LimitError](err)
	switch {
	case err == nil:
		return Outcome{Result: Sent, Job: job, Problem: o.Problem()}
	case isBeyond:
		return Outcome{Result: BeyondLimit, Err: limit}
	case errors.Is(err, agentapi.ErrNotSent), errors.Is(err, agentapi.ErrRefused):
		return Outcome{Result: NoEffect, Err: err, Problem: o.Problem()}
	}
	return Outcome{Result: Unknown, Err: err, Earlier: o.Recorded(), Problem: o.Problem()}
}

// takeOver takes over what another run has sent, unless a person has given it up: then the request is due.
func (o *Operation) takeOver(ctx context.Context, earlier *journal.Earlier) (_ Outcome, isDue bool) {
	r := o.Request
	isGivenUp := earlier.GivenUp && r.Kind == Create
	if earlier.Status == store.Unknown && !isGivenUp {
		o.Supersede(earlier)
		return Outcome{Result: EarlierUnknown, Earlier: earlier}, false
	}
	var job *agentapi.Job
	if earlier.Status == store.Accepted {
		var err error
		job, err = o.sender.Client.FindJob(ctx, r.ProjectID, earlier.JobID) // it may be new, and not be found yet
		isGivenUp = isGivenUp && (errors.Is(err, agentapi.ErrNotFound) || !o.IsEqual(earlier))
		switch {
		case isGivenUp:
		case err != nil:
			return Outcome{Result: Unreadable, Earlier: earlier, Err: err}, false
		case !o.IsEqual(earlier):
			return Outcome{Result: OtherPrompt, Earlier: earlier}, false
		}
	}
	if isGivenUp {
		if err := o.GiveUp(earlier); err != nil { //nolint:contextcheck // it has the context of Begin, without our deadline
			return Outcome{Result: JournalUnusable, Err: err}, false
		}
		return Outcome{}, true
	}
	if err := o.Take(earlier); err != nil { //nolint:contextcheck // as above
		return Outcome{Result: JournalUnusable, Err: err}, false
	}
	return Outcome{Result: TakenOver, Job: job, Earlier: earlier, Problem: o.Problem()}, false
}
