// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

func TestMarks_transitions(t *testing.T) {
	t.Parallel()
	const active, completed = agentapi.StatusActive, agentapi.StatusCompleted
	was := func(status agentapi.Status) *jobModel {
		return &jobModel{jobRecord: jobRecord{Status: types.StringValue(string(status))}}
	}
	for name, test := range map[string]struct {
		before marks
		do     func(m *marks, start time.Time) any
		want   marks // messagedAt: whether it is set
		result any
	}{
		"a message that arrived": {
			marks{unconfirmed: true, missing: true}, func(m *marks, _ time.Time) any { m.messaged(true); return nil },
			marks{missing: true, messagedAt: time.Unix(1, 0)}, nil,
		},
		"a message without a response": {
			marks{prompt: "hash"}, func(m *marks, _ time.Time) any { m.messaged(false); return nil },
			marks{prompt: "hash", unconfirmed: true}, nil,
		},
		"an unconfirmed message shows in an active job": {
			marks{unconfirmed: true, missing: true}, func(m *marks, _ time.Time) any { return m.observed(was(completed), active) }, marks{}, active,
		},
		"not if it was active": {
			marks{unconfirmed: true}, func(m *marks, _ time.Time) any { return m.observed(was(active), active) }, marks{unconfirmed: true}, active,
		},
		"a final status soon after a message": {
			marks{}, func(m *marks, start time.Time) any { m.messagedAt = start; return m.observed(was(active), completed) },
			marks{messagedAt: time.Unix(1, 0)}, active,
		},
		"a final status later": {
			marks{}, func(m *marks, start time.Time) any {
				m.messagedAt = start.Add(-wait.Settle)
				return m.observed(was(active), completed)
			},
			marks{}, completed,
		},
		"a wait that was interrupted after the run of the message began": {
			marks{}, func(m *marks, start time.Time) any {
				m.messagedAt = start
				m.interrupted(wait.Messaged, active)
				return nil
			}, marks{}, nil,
		},
		"a wait that was interrupted before": {
			marks{}, func(m *marks, start time.Time) any {
				m.messagedAt = start
				m.interrupted(wait.Messaged, completed)
				return nil
			},
			marks{messagedAt: time.Unix(1, 0)}, nil,
		},
		"a finished job": {
			marks{missing: true, unconfirmed: true}, func(m *marks, start time.Time) any { m.messagedAt = start; m.finished(); return nil },
			marks{unconfirmed: true}, nil,
		},
		"a prompt in the state": {
			marks{prompt: "hash"}, func(m *marks, _ time.Time) any { m.saved(&jobModel{Prompt: types.StringValue("A")}); return nil }, marks{}, nil,
		},
		"a prompt that is ignored": {
			marks{prompt: "hash", planned: "hash"}, func(m *marks, _ time.Time) any { m.plans(new(jobModel), "job_1"); m.saved(new(jobModel)); return nil },
			marks{prompt: "hash", ignored: true}, nil,
		},
		"an ephemeral prompt": {
			marks{ignored: true}, func(m *marks, _ time.Time) any {
				m.plans(&jobModel{PromptWO: types.StringValue("A")}, "job_1")
				return nil
			},
			marks{planned: promptHash("job_1", "A")}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got := test.before
				if result := test.do(&got, time.Now()); result != test.result {
					t.Errorf("result %v, want %v", result, test.result)
				}
				if !got.messagedAt.IsZero() {
					got.messagedAt = time.Unix(1, 0)
				}
				if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(marks{})); diff != "" {
					t.Errorf("marks (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// private is a private state.
type private map[string][]byte

func (p private) GetKey(_ context.Context, key string) ([]byte, diag.Diagnostics) { return p[key], nil }
func (p private) SetKey(_ context.Context, key string, value []byte) diag.Diagnostics {
	if p[key] = value; value == nil {
		delete(p, key)
	}
	return nil
}

// States keep these keys and values: an unconfirmed message must stay unconfirmed, and a hash comparable.
func TestMarks_stored(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 0, 24, 16, 0, time.UTC)
	const stored = `{"messaged":"2026-11-23T00:24:16Z","missing":true,"unconfirmed":true,"prompt":"hash","planned":"other","ignored":true}`
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(stored), &raw); err != nil {
		t.Fatal(err)
	}
	p := private{}
	for key, value := range raw {
		p[key] = value
	}
	want := marks{messagedAt: at, missing: true, unconfirmed: true, prompt: "hash", planned: "other", ignored: true}
	got := readMarks(t.Context(), p)
	if diff := cmp.Diff(want, *got, cmp.AllowUnexported(marks{})); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	again := private{}
	got.write(t.Context(), again)
	if diff := cmp.Diff(p, again); diff != "" {
		t.Errorf("written (-read +written):\n%s", diff)
	}
	got.journal = journal.Ref{Entries: []string{"entry"}}
	got.write(t.Context(), again)
	if kept := readMarks(t.Context(), again); cmp.Diff(kept.journal, got.journal, cmp.AllowUnexported(journal.Ref{})) != "" {
		t.Errorf("the journal is %v, want %v", kept.journal, got.journal)
	}
	if (&marks{}).write(t.Context(), again); len(again) > 0 {
		t.Errorf("keys without a mark: %v", again)
	}
}
