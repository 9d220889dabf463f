// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// Each step is an apply; what it says, and why it replaces, is asserted. What is sent when is
// the subject of internal/test/lives.
func TestJob_steps(t *testing.T) {
	const (
		sent     = "Follow-up message to agent job"
		recorded = "Prompt recorded without sending it"
		replaced = "New prompt starts a new agent job"
		failed   = "Agent job failed"
		later    = "Prompt not known yet"
	)
	type step struct {
		before            func(s *harness.Service, c *fakecli.CLI) // what happens between the applies
		planned           attrs                                    // nil: as applied
		config            attrs
		says              string // part of what plan and apply say; empty: nothing is said
		because           []string
		creates, messages int // so far
	}
	forgetHash := func(_ *harness.Service, c *fakecli.CLI) { c.Private = nil }
	imported := func(s *harness.Service, c *fakecli.CLI) { c.ImportState(c.T.Context(), harness.Project+"/"+ended(s)) }
	byIdentity := func(s *harness.Service, c *fakecli.CLI) {
		kind := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"project_id": tftypes.String, "id": tftypes.String}}
		c.Identity = &tfprotov6.ResourceIdentityData{IdentityData: c.Dynamic(fakecli.Object(kind, attrs{"project_id": harness.Project, "id": ended(s)}))}
		resp, err := c.Server.ImportResourceState(c.T.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: "agent_job", Identity: c.Identity})
		if err != nil || fakecli.Failed(resp.Diagnostics) {
			c.T.Fatal(err, fakecli.Text(resp.Diagnostics))
		}
		c.State = c.Decode(resp.ImportedResources[0].State)
	}
	importedFailed := func(s *harness.Service, c *fakecli.CLI) {
		imported(s, c)
		s.SetStatus(c.Get("id").(string), "failed")
	}
	fails := func(s *harness.Service, c *fakecli.CLI) { s.SetStatus(c.Get("id").(string), "failed") }
	a, b := attrs{"prompt_wo": "A"}, attrs{"prompt_wo": "B"}
	none, noWait := attrs{}, attrs{"wait": attrs{"enabled": false}} // as planned with ignore_changes
	write, triggers := attrs{"prompt": "write"}, attrs{"triggers": attrs{"spec": "1"}}
	slow := attrs{"prompt": "slowly"}
	plain, unread := attrs{"prompt": "A"}, attrs{"prompt_wo": unknown{}}
	for name, steps := range map[string][]step{
		"failed after a message": {
			{config: write, creates: 1},
			{config: attrs{"prompt": "fail"}, says: failed, creates: 1, messages: 1},
			{config: attrs{"prompt": "fail"}, says: "-replace=ADDRESS", creates: 1, messages: 1},
			{config: attrs{"prompt": "write again"}, says: replaced, because: []string{`AttributeName("prompt")`}, creates: 2, messages: 1},
		},
		"active job, triggers":        {{config: fakecli.With(slow, noWait), creates: 1}, {config: fakecli.With(fakecli.With(slow, noWait), triggers), says: "Active agent job will be replaced", because: []string{`AttributeName("triggers")`}, creates: 2}},
		"import of a failed job":      {{before: importedFailed, config: fakecli.With(write, triggers), says: recorded}, {config: fakecli.With(write, triggers), says: failed}},
		"changed text":                {{config: a, creates: 1}, {config: a, creates: 1}, {config: b, says: sent, creates: 1, messages: 1}, {config: b, creates: 1, messages: 1}},
		"import by identity":          {{before: byIdentity, config: fakecli.With(write, triggers), says: recorded}, {config: fakecli.With(write, triggers)}},
		"missing hash":                {{config: a, creates: 1}, {before: forgetHash, config: b, says: recorded, creates: 1}, {config: b, creates: 1}},
		"ignored":                     {{config: a, creates: 1}, {planned: none, config: b, creates: 1}, {planned: noWait, config: fakecli.With(b, noWait), creates: 1}, {config: b, says: sent, creates: 1, messages: 1}},
		"ignored, resumed":            {{config: fakecli.With(a, noWait), creates: 1}, {planned: none, config: b, says: "Unfinished agent job", creates: 1}, {config: a, creates: 1}},
		"ignored, from prompt":        {{config: plain, creates: 1}, {planned: none, config: b, creates: 1}, {config: a, creates: 1}},
		"failed job":                  {{config: a, creates: 1}, {before: fails, config: b, says: replaced, because: []string{`AttributeName("status")`}, creates: 2}, {config: b, creates: 2}},
		"unknown while planning":      {{planned: unread, config: a, creates: 1}, {planned: unread, config: a, says: later, creates: 1}, {planned: unread, config: b, says: later, creates: 1, messages: 1}, {config: b, creates: 1, messages: 1}},
		"unknown, then empty":         {{planned: unread, config: attrs{"prompt_wo": ""}, says: "It was not sent to project proj_1."}},
		"unknown, then null":          {{planned: unread, config: attrs{}, says: "It was not sent to project proj_1."}},
		"unknown, then both":          {{planned: attrs{"prompt": "A", "prompt_wo": unknown{}}, config: attrs{"prompt": "A", "prompt_wo": "A"}, says: "It was not sent to project proj_1."}},
		"unknown on a failed job":     {{config: a, creates: 1}, {before: fails, planned: unread, config: b, says: "cannot accept messages", creates: 1}, {planned: unread, config: a, says: later, creates: 1}},
		"unknown, null on a live job": {{config: a, creates: 1}, {planned: unread, config: attrs{}, says: "It was not sent to project proj_1.", creates: 1}, {config: a, creates: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Bubble(t, byPrompt, func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
				for i, step := range steps {
					if step.before != nil {
						step.before(s, c)
					}
					if step.planned == nil {
						step.planned = step.config
					}
					c.Refresh(t.Context())
					diags := c.Plan(t.Context(), step.planned)
					if diff := cmp.Diff(step.because, c.Because); diff != "" {
						t.Errorf("step %d: attributes that ask for a replacement (-want +got):\n%s", i, diff)
					}
					diags = append(diags, c.Apply(t.Context(), step.config)...)
					if said := fakecli.Text(diags); step.says == "" && said != "" || !strings.Contains(said, step.says) {
						t.Errorf("step %d: want %q in:\n%s", i, step.says, said)
					}
					if c.Tainted {
						t.Errorf("step %d: tainted", i)
					}
					s.Sent(t, step.creates, step.messages)
				}
			})
		})
	}
}
