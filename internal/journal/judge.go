// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"slices"
	"time"
)

// Wanted is a request that a resource wants to send for its name, or plans to send.
type Wanted struct {
	Project, Name string
	JobID         string // the recipient of a message; empty for a create
	Arguments     string // what tells creates apart, beside the prompt, as text
	Prompt        string // as it is compared; see IsPromptUnknown
	// IsPromptUnknown: the plan does not know the prompt yet.
	IsPromptUnknown bool
}

// Verdict is what a request has to do because of the record of its name.
type Verdict int

// The verdicts.
const (
	// Send: no record is in the way.
	Send Verdict = iota
	// Wait: another run is sending a request, and its response may still arrive.
	Wait
	// Adopt: an earlier run's create was accepted, and the record has its job, which the create takes.
	Adopt
	// Beside: the create finds a job with another prompt or other arguments. It sends, unless the job is
	// active with the same arguments.
	Beside
	// UnknownCreate: an earlier run sent a create, no response shows its outcome, and a person has to
	// decide.
	UnknownCreate
	// AlreadySent: an earlier run sent the message, and the service accepted it.
	AlreadySent
	// UnknownMessage: an earlier run sent the message, and no response shows its outcome.
	UnknownMessage
	// OtherJob: the message is for a job that the name does not have: it has another one, or an
	// unknown create.
	OtherJob
)

// judge is the protocol: it decides what a request has to do because of what its name's record
// says. It does not depend on the CLI's state.
func (j *Journal) judge(r *Record, w Wanted) Verdict {
	if !j.isOver(r.Claim) {
		return Wait
	}
	r = j.settle(r)
	if w.JobID == "" {
		return j.judgeCreate(r, w)
	}
	return j.judgeMessage(r, w)
}

func (j *Journal) judgeCreate(r *Record, w Wanted) Verdict {
	switch {
	case r.Last == nil, j.isGivenUp(r), r.Released && !j.IsLeft(r):
		return Send
	case r.IsUnknownCreate():
		return UnknownCreate
	case r.isFor(w):
		return Adopt
	}
	return Beside
}

// IsLeft reports whether a Delete of this run has left the job of a record to a create.
func (j *Journal) IsLeft(r *Record) bool { return r.Left != "" && r.Left == j.process.Run }

func (j *Journal) judgeMessage(r *Record, w Wanted) Verdict {
	switch {
	case r.Last == nil, r.Released && r.JobID != w.JobID:
		return Send // the record was lost, or is about an earlier job: the state has the job of the message
	case r.JobID != w.JobID && !j.isGivenUp(r):
		return OtherJob
	case r.JobID != w.JobID, w.IsPromptUnknown, !r.has(w.Prompt):
		return Send
	case r.Last.Unknown:
		return UnknownMessage
	}
	return AlreadySent
}

// isGivenUp reports whether a person has given up the last request of a name.
func (j *Journal) isGivenUp(r *Record) bool { return r.Last != nil && j.IsGivenUp(r.Last.ID) }

// IsGivenUp reports whether a person has given up a request.
func (j *Journal) IsGivenUp(id string) bool { return slices.Contains(j.Forget, id) }

// isOver reports whether no response to a claimed request can arrive any more. A record without a
// claim waits for none.
func (j *Journal) isOver(claim *Request) bool {
	return claim == nil || time.Now().After(claim.Deadline) || j.process.Ended(claim.Sender)
}

// settle returns what a record says once its claim is over, if it has one. A sender that marks a
// claim before it sends, and that has ended on this machine without a mark, has sent nothing.
func (j *Journal) settle(r *Record) *Record {
	switch {
	case r.Claim == nil:
		return r
	case r.Claim.Unsent && j.process.Ended(r.Claim.Sender):
		s := *r
		s.Claim = nil
		return &s
	}
	return r.withUnknown()
}
