// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

// marks are what a later call must know about a job and no attribute shows. They are in the private state.
type marks struct {
	messagedAt  time.Time // when a message was accepted whose run of the job has not been seen to start or end
	unconfirmed bool      // a message was sent, and nothing showed its effect
	closed      bool      // the job has finished and refuses messages
	refused     string    // the hash of a prompt that it refused after it had finished: if it refuses another one too, it is closed
	prompt      string    // the hash of the last write-only prompt sent to the job
	ignored     bool      // the plan has no prompt to compare, because of ignore_changes
	version     string    // of the record of the job's name, with what the state shows
	moved       bool      // that version is newer than the stored state
	adoption    string    // of the job by this object, as the record knows it
	planned     string    // in a planned object: the job that the resource has. A replacement's second call finds it
	keepsFailed bool      // in a planned object: the job that it replaces failed, and keeps its name
	undecided   bool      // in a planned object: the plan could not tell whether a job that failed keeps its name
	name        string    // in a planned object: the name, which the Delete of the earlier one leaves to it if that failed
	creates     bool      // in a planned object: it is a new one. The Delete of the earlier one finds this, too
	told        bool      // in a planned object: the first call has warned of what the second one finds
}

// fields are the marks by their keys in the private state.
func (m *marks) fields() map[string]any {
	return map[string]any{
		"messaged": &m.messagedAt, "unconfirmed": &m.unconfirmed, "refused": &m.closed, "refused_prompt": &m.refused,
		"prompt": &m.prompt, "ignored": &m.ignored, "record": &m.version, "moved": &m.moved, "adoption": &m.adoption,
		"job": &m.planned, "keep": &m.keepsFailed, "undecided": &m.undecided, "name": &m.name, "told": &m.told, "creates": &m.creates,
	}
}

// privateState is the framework's private state, in a plan or a response.
type privateState interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func readMarks(ctx context.Context, p privateState) *marks {
	m := new(marks)
	for key, field := range m.fields() {
		if text, _ := p.GetKey(ctx, key); len(text) > 0 {
			_ = json.Unmarshal(text, field) // nothing but write writes it
		}
	}
	return m
}

func (m *marks) write(ctx context.Context, p privateState) {
	for key, field := range m.fields() {
		var text []byte // nil removes the key
		if !reflect.ValueOf(field).Elem().IsZero() {
			text, _ = json.Marshal(field)
		}
		p.SetKey(ctx, key, text)
	}
}

// known is the version of the record as the stored state knows it: if it is another one by now, the refresh has read the record, and a
// plan has to say what it found.
func (m *marks) known() string {
	if m.moved {
		return ""
	}
	return m.version
}

// saved follows the write of a job to the state, whose prompt is now the one that was sent to it.
// A plan must not call it: it has not sent the prompt.
func (m *marks) saved(job *jobModel) {
	switch {
	case !job.PromptWO.IsNull():
		m.prompt = promptHash(job.ID.ValueString(), job.comparedPrompt())
	case !job.Prompt.IsNull():
		m.prompt = ""
	}
}

// recordedPrompt is what a state with these marks says of the job's last prompt.
func (m *marks) recordedPrompt(state *jobModel) recordedPrompt {
	return recordedPrompt{text: state.comparedPrompt(), jobID: state.ID.ValueString(), hash: m.prompt}
}

// messaged follows a message: one that was accepted at that time, or, without a time, one that may have arrived.
func (m *marks) messaged(at time.Time) {
	m.reopen()
	m.unconfirmed = at.IsZero()
	if !at.IsZero() {
		m.messagedAt = at
	}
}

// refuses follows the refusal of a prompt by a job that has finished.
func (m *marks) refuses(hash string, reason agentapi.Reason) {
	m.closed = m.closed || reason == agentapi.ReasonJob || m.refused != "" && m.refused != hash
	m.refused = hash
}

// reopen forgets refusals: the job is active, or the prompt is one that it has accepted.
func (m *marks) reopen() { m.closed, m.refused = false, "" }

// observed follows a refresh. It returns the status that the record shows of the run that the last message started.
func (m *marks) observed(before *jobModel, status agentapi.Status) agentapi.Status {
	if status.Unfinished() {
		m.reopen()
		m.unconfirmed = m.unconfirmed && !before.ended() // else the message has arrived after all
	}
	if wait.MayBeStale(status, m.messagedAt) {
		return agentapi.StatusActive // this status may be the one from before the message
	}
	m.messagedAt = time.Time{}
	return status
}

// finished follows a wait that has seen the job finish.
func (m *marks) finished() { m.messagedAt = time.Time{} }

// interrupted follows a wait that stopped earlier, after it had seen the status.
func (m *marks) interrupted(after wait.Event, status agentapi.Status) {
	if after == wait.Messaged && status.Unfinished() {
		m.messagedAt = time.Time{} // the message has had its effect: a later final status is that of its run
	}
}

// recordedPrompt is what the state contains about the last prompt sent to a job: its
// text, or the hash of a write-only one. An imported job has neither.
type recordedPrompt struct {
	text        types.String
	jobID, hash string
}

// missing reports that the job was imported.
func (r recordedPrompt) missing() bool { return r.text.IsNull() && r.hash == "" }

// is reports whether the job was last sent this prompt. Earlier versions hashed the text that they sent.
func (r recordedPrompt) is(plan *jobModel) bool {
	prompt := plan.comparedPrompt()
	if r.text.IsNull() && !prompt.IsUnknown() {
		return r.hash == promptHash(r.jobID, prompt) || r.hash == promptHash(r.jobID, plan.promptText())
	}
	return r.text.Equal(prompt)
}

// promptHash is salted with the job's id: equal prompts have different hashes.
func promptHash(jobID string, prompt types.String) string {
	sum := sha256.Sum256([]byte(jobID + "\n" + prompt.ValueString()))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
