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

// marks are what a later call must know about a job and no attribute shows. They are in the private
// state.
type marks struct {
	message messageMarks
	record  recordMarks
	plan    planMarks
}

// messageMarks are about the prompts that were sent to the job.
type messageMarks struct {
	SentAt        time.Time `json:"sent,omitzero"`         // of an accepted message whose run of the job was not seen to start or end
	Unconfirmed   bool      `json:"unconfirmed,omitempty"` // a message was sent, and nothing showed its effect
	IsMissing     bool      `json:"missing,omitempty"`     // the last refresh did not find the job
	IsClosed      bool      `json:"closed,omitempty"`      // the job has finished and refuses messages
	RefusedPrompt string    `json:"refused,omitempty"`     // hash of the one that it refused when it had finished: a second one closes it
	Prompt        string    `json:"prompt,omitempty"`      // the hash of the last write-only prompt sent to the job
}

// recordMarks are about the record of the job's name.
type recordMarks struct {
	Adoption string `json:"adoption,omitempty"` // of the job by this object, as the record knows it
}

// planMarks are what a planning call tells those that follow it: the second planning call of a
// replacement (T2), and the Update or Delete that applies the plan (T6).
type planMarks struct {
	IsPromptIgnored bool       `json:"ignored,omitempty"`   // there is no prompt to compare, because of ignore_changes
	Job             string     `json:"job,omitempty"`       // in the state, as the first call sees it; empty if the object is tainted (T1, T2)
	Successor       *successor `json:"successor,omitempty"` // the object is a new one
}

// successor is a new object, as a plan shows it to the Delete of the object that it replaces.
type successor struct {
	Name      string `json:"name,omitempty"`
	MayBeSame bool   `json:"same,omitempty"` // its create may adopt the job or send it a message, as far as the plan knows
	Prompt    string `json:"had,omitempty"`  // the hash of the last write-only prompt of the object that has the name
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

// promptSaved follows the write of a job to the state, whose prompt is now the one that was sent to
// it. A plan must not call it: it has not sent the prompt.
func (m *messageMarks) promptSaved(job *jobModel) {
	switch {
	case !job.PromptWO.IsNull():
		m.Prompt = promptHash(job.ID.ValueString(), job.comparedPrompt())
	case !job.Prompt.IsNull():
		m.Prompt = ""
	}
}

// messaged follows a message: one that was accepted at that time, or, without a time, one that may
// have arrived.
func (m *messageMarks) messaged(at time.Time) {
	m.IsClosed, m.RefusedPrompt = false, ""
	m.Unconfirmed = at.IsZero()
	if !at.IsZero() {
		m.SentAt = at
	}
}

// refuses follows the refusal of a prompt by a job that has finished.
func (m *messageMarks) refuses(hash string, reason agentapi.Reason) {
	m.IsClosed = m.IsClosed || reason == agentapi.ReasonJob || m.RefusedPrompt != "" && m.RefusedPrompt != hash
	m.RefusedPrompt = hash
}

// observed follows a refresh. It returns the status that the record shows of the run that the last
// message started.
func (m *messageMarks) observed(before *jobModel, status agentapi.Status) agentapi.Status {
	if status == "" { // it shows nothing
		return status
	}
	if status.Unfinished() {
		m.IsClosed, m.RefusedPrompt = false, ""
		m.Unconfirmed = m.Unconfirmed && !before.hasFinished() // else the message has arrived after all
	}
	if now := time.Now(); m.SentAt.After(now) {
		m.SentAt = now // another machine's clock was ahead
	}
	if wait.MayBeStale(status, m.SentAt) {
		return agentapi.StatusActive // this status may be the one from before the message
	}
	m.SentAt = time.Time{}
	return status
}

// finished follows a wait that has seen the job finish.
func (m *messageMarks) finished() { m.SentAt = time.Time{} }

// interrupted follows a wait that stopped earlier, after it had seen the status.
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
