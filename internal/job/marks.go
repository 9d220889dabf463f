// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// marks are what the private state tells a later call about a job, because no attribute shows it.
type marks struct {
	message     messageMarks
	replacement replacement
	// holder is the Holder that the record had when this object got the job. If the record has another one
	// now, another object has adopted the job, and Delete does not free the name.
	holder string
}

// messageMarks are about the messages that were sent to the job.
type messageMarks struct {
	// SentAt is when the last message was sent, while a final status may still be the one from before
	// it. It is zero once the job was seen at work or finished since then.
	SentAt      time.Time `json:"sent,omitzero"`
	Unconfirmed bool      `json:"unconfirmed,omitempty"` // a message was sent, and nothing showed its effect
	// RefusesMessages: the job has finished, and has refused a message since.
	RefusesMessages bool `json:"closed,omitempty"`
	// WasCompleted: the job was archived after it had been seen completed, since its last message.
	WasCompleted bool `json:"completed,omitempty"`
}

// replacement is all that a replacement carries from call to call, in the private state. The first
// planning call knows the old object and the second one the new one (T2). Of a tainted object there is
// only the second (T1). Delete reads what they have written (T6). Create gets none of it: it does what
// the record says.
type replacement struct {
	OldJob    string          `json:"job,omitempty"`  // that of the old object; empty if that is tainted
	MayBeSame bool            `json:"same,omitempty"` // it is replaced because of a value that the plan does not know yet
	Next      *projectAndName `json:"by,omitempty"`   // the new object; nil if none follows, and empty parts are not known yet
}

// isFollowed reports whether another object follows.
func (r replacement) isFollowed() bool { return r.Next != nil }

// isOfJob reports whether a job in the state is replaced that is not tainted.
func (r replacement) isOfJob() bool { return r.OldJob != "" }

// isOfTainted reports whether the old object is tainted.
func (r replacement) isOfTainted() bool { return r.isFollowed() && !r.isOfJob() }

// keys are the marks by their keys in the private state.
func (m *marks) keys() map[string]any {
	return map[string]any{"message": &m.message, "replacement": &m.replacement, "holder": &m.holder}
}

// privateState is the framework's private state, in a plan or a response.
type privateState interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func readMarks(ctx context.Context, p privateState) *marks {
	m := new(marks)
	for key, value := range m.keys() {
		if text, _ := p.GetKey(ctx, key); len(text) > 0 {
			_ = json.Unmarshal(text, value) // nothing but write writes it
		}
	}
	return m
}

func (m *marks) write(ctx context.Context, p privateState) {
	for key, value := range m.keys() {
		text, _ := json.Marshal(value)
		if string(text) == "{}" || string(text) == `""` {
			text = nil // removes the key
		}
		p.SetKey(ctx, key, text)
	}
}

// accepted notes that a message was accepted at that time.
func (m *messageMarks) accepted(at time.Time) { *m = messageMarks{SentAt: at} }

// unanswered notes that a message was sent, and that no response shows whether it arrived.
func (m *messageMarks) unanswered() { *m = messageMarks{SentAt: m.SentAt, Unconfirmed: true} }

// observed notes the status that a refresh has read, and returns the one to show: active, as long
// as a final status may be the one from before the last message.
func (m *messageMarks) observed(before *jobModel, status agentapi.Status) agentapi.Status {
	if status == "" { // it shows nothing
		return status
	}
	if status.Unfinished() {
		m.RefusesMessages = false
		m.Unconfirmed = m.Unconfirmed && !before.hasFinished() // a finished job works again: it arrived
	}
	if now := time.Now(); m.SentAt.After(now) {
		m.SentAt = now // another machine's clock was ahead
	}
	if agentapi.MayBeStale(status, m.SentAt) {
		return agentapi.StatusActive // this status may be the one from before the message
	}
	m.SentAt = time.Time{}
	m.WasCompleted = m.WasCompleted || before.is(agentapi.StatusCompleted) && status == agentapi.StatusArchived
	return status
}

// isClosed reports whether the job cannot accept messages.
func (m *messageMarks) isClosed(job *shownJob) bool {
	return m.RefusesMessages || job.is(agentapi.StatusFailed) || job.is(agentapi.StatusArchived)
}

// countsAsFailed reports whether the job counts as failed: so does one that was archived if nothing shows
// that its work was done before.
func (m *messageMarks) countsAsFailed(job *shownJob) bool {
	return job.is(agentapi.StatusFailed) || job.is(agentapi.StatusArchived) && job.PRLink.IsNull() && !m.WasCompleted
}

// finished notes that a wait has seen the job finish.
func (m *messageMarks) finished() { m.SentAt = time.Time{} }

// interrupted notes that a wait stopped before the job finished; status is what it read last.
func (m *messageMarks) interrupted(status agentapi.Status) {
	if status.Unfinished() {
		m.SentAt = time.Time{} // any message has had its effect: a later final status is that of its run
	}
}
