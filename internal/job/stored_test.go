// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// What later runs and later versions read: marks in the private state, the job in the state, and what records have hashes of.

func TestMarks_transitions(t *testing.T) {
	t.Parallel()
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of a bubble's clock
	const active, completed = agentapi.StatusActive, agentapi.StatusCompleted
	type transition = func(m *messageMarks)
	observed := func(was, status, want agentapi.Status) transition {
		return func(m *messageMarks) {
			before := &jobModel{shownJob: shownJob{Status: types.StringValue(string(was))}}
			if got := m.observed(before, status); got != want {
				t.Errorf("a job that was %s and is %s counts as %s, want %s", was, status, got, want)
			}
		}
	}
	messaged := func(at time.Time) transition { return func(m *messageMarks) { m.accepted(at) } }
	interrupted := func(status agentapi.Status) transition {
		return func(m *messageMarks) { m.interrupted(status) }
	}
	unconfirmed, recent := messageMarks{Unconfirmed: true}, messageMarks{SentAt: start}
	for name, test := range map[string]struct {
		before messageMarks
		do     transition
		want   messageMarks
	}{
		"a message that arrived":        {unconfirmed, messaged(start), recent},
		"a message without a response":  {messageMarks{}, (*messageMarks).unanswered, unconfirmed},
		"another one":                   {unconfirmed, (*messageMarks).unanswered, unconfirmed},
		"an unconfirmed message shows":  {unconfirmed, observed(completed, active, active), messageMarks{}},
		"not if the job was active":     {unconfirmed, observed(active, active, active), unconfirmed},
		"a refusal, then active":        {messageMarks{RefusesMessages: true}, observed(completed, active, active), messageMarks{}},
		"a refusal, then finished":      {messageMarks{RefusesMessages: true}, observed(completed, completed, completed), messageMarks{RefusesMessages: true}},
		"a refusal, then a message":     {messageMarks{RefusesMessages: true}, messaged(start), recent},
		"nor without a status":          {unconfirmed, observed(completed, "", ""), unconfirmed},
		"a status soon after a message": {recent, observed(active, completed, active), recent},
		"no status after a message":     {recent, observed(active, "", ""), recent},
		"a clock that was ahead":        {messageMarks{SentAt: start.Add(time.Hour)}, observed(active, completed, active), recent},
		"a status later":                {messageMarks{SentAt: start.Add(-agentapi.StaleFor)}, observed(active, completed, completed), messageMarks{}},
		"a wait interrupted in the run": {recent, interrupted(active), messageMarks{}},
		"a wait interrupted before it":  {recent, interrupted(completed), recent},
		"a finished job":                {messageMarks{Unconfirmed: true, SentAt: start}, (*messageMarks).finished, unconfirmed},
	} {
		synctest.Test(t, func(t *testing.T) {
			test.do(&test.before)
			if diff := cmp.Diff(test.want, test.before); diff != "" {
				t.Errorf("marks after %s (-want +got):\n%s", name, diff)
			}
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
	read, written := private{
		"message":     []byte(`{"sent":"2026-11-23T00:24:16Z","unconfirmed":true,"closed":true}`),
		"holder":      []byte(`"random"`),
		"replacement": []byte(`{"job":"job_1","same":true,"by":{"project":"proj_1","name":"docs"}}`),
	}, private{}
	want := marks{
		messageMarks{SentAt: time.Date(2026, 11, 23, 0, 24, 16, 0, time.UTC), Unconfirmed: true, RefusesMessages: true},
		replacement{OldJob: "job_1", MayBeSame: true, Next: &projectAndName{"proj_1", "docs"}},
		"random",
	}
	m := readMarks(t.Context(), read)
	if diff := cmp.Diff(want, *m, cmp.AllowUnexported(marks{})); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	m.write(t.Context(), written)
	if diff := cmp.Diff(read, written); diff != "" {
		t.Errorf("written (-read +written):\n%s", diff)
	}
	if new(marks).write(t.Context(), written); len(written) > 0 {
		t.Errorf("keys without a mark: %v", written)
	}
}

// A job that cannot be written after a POST is named, and nothing denies the POST.
func TestSave_failed(t *testing.T) {
	t.Parallel()
	var diags diag.Diagnostics
	job := jobModel{
		ProjectID: types.StringValue("proj_1"), arguments: arguments{Triggers: types.MapNull(types.StringType)},
		shownJob: shownJob{ID: types.StringValue("job_1")},
	}
	state := &tfsdk.State{Schema: schema.Schema{}, Raw: tftypes.NewValue(tftypes.Object{}, nil)}
	stateWriter{state: state, private: private{}, marks: new(marks), diags: &diags}.save(t.Context(), &job)
	if len(diags) != 2 { // the first one is the framework's
		t.Fatalf("diagnostics: %v", diags)
	}
	detail := diags[1].Detail()
	for _, want := range []string{"Job job_1 in project proj_1 could not be written to the state. ", "The prompt may have been sent", "https://github.com/agentjobs/terraform-provider-agent/issues"} {
		if !strings.Contains(detail, want) {
			t.Errorf("missing %q in:\n%s", want, detail)
		}
	}
}

// A later version finds what an earlier one has recorded, or it would send that again: records have the hash of these triggers.
func TestRequest_triggers(t *testing.T) {
	t.Parallel()
	for want, triggers := range map[string]types.Map{
		"null{}":               types.MapNull(types.StringType),
		"{}{}":                 types.MapValueMust(types.StringType, nil),
		`{"a":null,"b":"1"}{}`: types.MapValueMust(types.StringType, map[string]attr.Value{"b": types.StringValue("1"), "a": types.StringNull()}),
	} {
		job := jobModel{Name: types.StringValue("a"), Prompt: types.StringValue("prompt"), ProjectID: types.StringValue("proj"), arguments: arguments{Triggers: triggers}}
		if got := job.request(t.Context(), "").Arguments; got != want {
			t.Errorf("the triggers of earlier versions were %s, and are %s", want, got)
		}
	}
}
