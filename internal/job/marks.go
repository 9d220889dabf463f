// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

// marks are what the private state tells a later call about a job, because no attribute shows it.
type marks struct {
	message messageMarks
	record  recordMarks
	plan    planMarks
}

// messageMarks are about the prompts that were sent to the job.
type messageMarks struct {
	// SentAt is when the last message was sent, while a final status may still be the one from before
	// it. It is zero once the job was seen at work or finished since then.
	SentAt      time.Time `json:"sent,omitzero"`
	Unconfirmed bool      `json:"unconfirmed,omitempty"` // a message was sent, and nothing showed its effect
	IsMissing   bool      `json:"missing,omitempty"`     // the last refresh did not find the job
	IsClosed    bool      `json:"closed,omitempty"`      // the job has finished and refuses messages
	// WasCompleted: the job was archived after it had been seen completed, since its last message.
	WasCompleted bool `json:"completed,omitempty"`
	// RefusedPrompt is the hash of the prompt that the job refused after it had finished. If the job
	// then refuses a different one, too, it counts as closed.
	RefusedPrompt string `json:"refused,omitempty"`
	Prompt        string `json:"prompt,omitempty"` // the hash of the last write-only prompt sent to the job
}

// recordMarks are about the record of the job's name.
type recordMarks struct {
	// Adoption is what the record of the name had as its Adoption when this object got the job. If
	// another object has adopted the job since, Delete does not free the name.
	Adoption string `json:"adoption,omitempty"`
}

// planMarks are what a planning call tells those that follow it: the second planning call of a
// replacement (T2), and the Update or Delete that applies the plan (T6).
type planMarks struct {
	IsPromptIgnored bool `json:"ignored,omitempty"` // there is no prompt to compare, because of ignore_changes
	// Job is the job in the state, which the first planning call of a replacement passes on to the
	// second one (T2). It is empty if the object is tainted, because then there is no first call (T1).
	Job string `json:"job,omitempty"`
	// MayBeSame: the job is replaced because of a value that the plan does not know yet. So Delete keeps
	// the name, and the create finds out: of the same request, it adopts the job.
	MayBeSame bool `json:"same,omitempty"`
	// Successor is the object that a create will make, for the Delete of the one that it replaces.
	Successor *successor `json:"successor,omitempty"`
}

// successor is a new object, as a plan shows it to the Delete of the object that it replaces.
type successor struct {
	Project string `json:"project,omitempty"` // empty if it is not known yet, as is the name
	Name    string `json:"name,omitempty"`
	// MayKeepJob: the create may adopt the job that has the name, or send it the prompt as a message;
	// it is also set if the plan does not know. The Delete of a tainted object then keeps the name.
	MayKeepJob bool `json:"keep,omitempty"`
	// Prompt is the hash of the last write-only prompt of the replaced object. If that is tainted, its
	// Delete does not get messageMarks.Prompt, but only what the plan of the successor has written (T1).
	Prompt string `json:"had,omitempty"`
}

// groups are the marks by their keys in the private state.
func (m *marks) groups() map[string]any {
	return map[string]any{"message": &m.message, "record": &m.record, "plan": &m.plan}
}

// privateState is the framework's private state, in a plan or a response.
type privateState interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func readMarks(ctx context.Context, p privateState) *marks {
	m := new(marks)
	for key, group := range m.groups() {
		if text, _ := p.GetKey(ctx, key); len(text) > 0 {
			_ = json.Unmarshal(text, group) // nothing but write writes it
		}
	}
	return m
}

func (m *marks) write(ctx context.Context, p privateState) {
	for key, group := range m.groups() {
		text, _ := json.Marshal(group)
		if string(text) == "{}" {
			text = nil // removes the key
		}
		p.SetKey(ctx, key, text)
	}
}

// promptSaved notes, once a job is in the state, the hash of its write-only prompt, which the state
// does not show. Only what has sent the prompt, or counts it as sent, may call it: a plan must not.
func (m *messageMarks) promptSaved(job *jobModel) {
	switch {
	case !job.PromptWO.IsNull():
		m.Prompt = promptHash(job.ID.ValueString(), job.comparedPrompt())
	case !job.Prompt.IsNull():
		m.Prompt = ""
	}
}

// messaged notes that a message was sent: it was accepted at that time, or, if the time is zero, no
// response shows whether it arrived.
func (m *messageMarks) messaged(at time.Time) {
	m.IsClosed, m.RefusedPrompt, m.WasCompleted = false, "", false
	m.Unconfirmed = at.IsZero()
	if !at.IsZero() {
		m.SentAt = at
	}
}

// refuses notes that a job which has finished refused the prompt with this hash.
func (m *messageMarks) refuses(hash string, reason agentapi.Reason) {
	m.IsClosed = m.IsClosed || reason == agentapi.ReasonJob || m.RefusedPrompt != "" && m.RefusedPrompt != hash
	m.RefusedPrompt = hash
}

// observed notes the status that a refresh has read, and returns the one to show: active, as long
// as a final status may be the one from before the last message.
func (m *messageMarks) observed(before *jobModel, status agentapi.Status) agentapi.Status {
	if status == "" { // it shows nothing
		return status
	}
	if status.Unfinished() {
		m.IsClosed, m.RefusedPrompt = false, ""
		m.Unconfirmed = m.Unconfirmed && !before.hasFinished() // a finished job works again: it arrived
	}
	if now := time.Now(); m.SentAt.After(now) {
		m.SentAt = now // another machine's clock was ahead
	}
	if wait.MayBeStale(status, m.SentAt) {
		return agentapi.StatusActive // this status may be the one from before the message
	}
	m.SentAt = time.Time{}
	m.WasCompleted = m.WasCompleted || before.is(agentapi.StatusCompleted) && status == agentapi.StatusArchived
	return status
}

// hasFailed reports whether a job that has finished counts as failed: so does one that was archived
// if nothing shows that its work was done before.
func (m *messageMarks) hasFailed(job *shownJob) bool {
	return job.is(agentapi.StatusFailed) || job.is(agentapi.StatusArchived) && job.PRLink.IsNull() && !m.WasCompleted
}

// finished notes that a wait has seen the job finish.
func (m *messageMarks) finished() { m.SentAt = time.Time{} }

// interrupted notes that a wait stopped before the job finished; status is what it read last.
func (m *messageMarks) interrupted(after wait.Event, status agentapi.Status) {
	if after == wait.Messaged && status.Unfinished() {
		m.SentAt = time.Time{} // the message has had its effect: a later final status is that of its run
	}
}

// isLastPrompt reports whether a plan has the prompt that the job of a state was last sent.
func (m *messageMarks) isLastPrompt(plan, state *jobModel) bool {
	had, prompt := state.comparedPrompt(), plan.comparedPrompt()
	if had.IsNull() && !prompt.IsUnknown() {
		return m.Prompt == promptHash(state.ID.ValueString(), prompt)
	}
	return had.Equal(prompt)
}

// promptHash is salted with the job's id: equal prompts have different hashes.
func promptHash(jobID string, prompt types.String) string {
	return journal.Hash(jobID, prompt.ValueString())
}
