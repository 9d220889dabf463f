// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// Each step is an apply; what it says, and why it replaces, is asserted. What is sent when is
// the subject of internal/test/lives.
//
// Red without: decide, setValues, isCounted; ignored; checkPrompts. M01: observed in Read, the time of the message in await,
// interrupted in cutShort. M03: each condition of noteRefusal. P02: set. P03: each place that says its warnings. P09: ErrNotFound in
// cutShort and in Read.
func TestJob_steps(t *testing.T) {
	const (
		later         = "WARNING: Prompt not known yet"
		archived      = "WARNING: Agent job archived"
		notFound      = "WARNING: Agent job not found"
		notSeenActive = "WARNING: Agent job not seen active"
		oddLink       = "WARNING: Invalid pull request link"
		broken        = "ERROR: " + fakecli.Inconsistent
		invalid       = "It was not sent to project proj_1."
	)
	type step struct {
		before            func(s *harness.Service, c *fakecli.CLI) // what happens between the applies
		pause             time.Duration                            // since the apply before
		faults            []simulator.Fault                        // during plan and apply
		planned           attrs                                    // nil: as applied
		ignored           []string                                 // attributes with ignore_changes
		once              bool                                     // planned only once, as some hosts do
		config            attrs
		says              []string // a part of each diagnostic of plan and apply
		because           []string
		counted           string // messages, as planned and in the state; empty: not compared
		status            string // in the state and of the service; empty: not compared
		creates, messages int    // so far
	}
	imported := func(s *harness.Service, c *fakecli.CLI) {
		c.ImportState(c.T.Context(), harness.Project+"/"+ended(s))
		resp, err := c.Server.ImportResourceState(c.T.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: "agent_job", Identity: c.Identity})
		if err != nil || fakecli.Failed(resp.Diagnostics) {
			c.T.Fatal(err, fakecli.Text(resp.Diagnostics))
		}
		c.State = c.Decode(resp.ImportedResources[0].State)
	}
	unidentified := func(_ *harness.Service, c *fakecli.CLI) { c.Identity = nil } // as an old CLI leaves it
	onceA, onceB := attrs{"prompt_wo": "once A"}, attrs{"prompt_wo": "once B"}
	a, b := attrs{"prompt_wo": "A"}, attrs{"prompt_wo": "B"}
	slow, triggers := attrs{"prompt": "slowly", "wait": attrs{"enabled": false}}, attrs{"triggers": attrs{"spec": "1"}}
	prompts := []string{"prompt", "prompt_wo"}
	unread, longer := attrs{"prompt_wo": unknown{}}, attrs{"timeouts": attrs{"update": "5m"}}
	unwaited, short := attrs{"wait": attrs{"enabled": false}}, attrs{"timeouts": attrs{"update": "500ms"}}
	is := func(status string) func(*harness.Service, *fakecli.CLI) {
		return func(s *harness.Service, c *fakecli.CLI) { s.SetStatus(c.Get("id").(string), status) }
	}
	refused := func(status int) simulator.Fault { return simulator.Fault{Kind: simulator.KindMessage, Status: status} }
	missing := simulator.Fault{Kind: simulator.KindGet, Times: -1, Status: 404}
	missingLater := simulator.Fault{Kind: simulator.KindGet, Times: -1, Status: 404, Skip: 1} // the refresh finds it
	faults := func(all ...simulator.Fault) []simulator.Fault { return all }
	// For most of the minute in which that may be, the service shows the end of the prompt before.
	stale := attrs{"prompt": "[simulate: 90s, stale=55s]"}
	for name, steps := range map[string][]step{
		"failed after a message": {
			{config: attrs{"prompt": "write"}, counted: "0 0", creates: 1},
			{config: attrs{"prompt": "fail"}, says: []string{failed}, counted: "1 1", creates: 1, messages: 1},
			{config: attrs{"prompt": "fail"}, says: []string{"-replace=ADDRESS", failed}, counted: "1 1", creates: 1, messages: 1},
			{config: attrs{"prompt": "again"}, says: []string{newJob}, because: []string{`AttributeName("prompt")`}, counted: "0 0", creates: 2, messages: 1},
		},
		"active job, triggers": {
			{config: slow, creates: 1},
			{
				config: fakecli.With(slow, triggers), creates: 2, because: []string{`AttributeName("triggers")`},
				says: []string{"WARNING: Active agent job will be replaced", "WARNING: Active agent job removed from state"},
			},
		},
		"import by identity": {
			{before: imported, config: a},
			{config: a},
		},
		"ignored": {
			{config: a, creates: 1},
			{ignored: prompts, config: b, creates: 1},
			{ignored: prompts, config: fakecli.With(b, longer), creates: 1},
			{config: b, creates: 1, messages: 1},
		},
		"unknown while planning": {
			{planned: unread, config: a, creates: 1},
			{planned: unread, config: a, once: true, counted: "? 0", creates: 1},
			{planned: unread, config: b, once: true, counted: "? 1", creates: 1, messages: 1},
			{config: b, creates: 1, messages: 1},
		},
		"unknown, then empty": {{planned: unread, config: attrs{"prompt_wo": ""}, says: []string{invalid}}},
		"unknown, then both": {
			{planned: attrs{"prompt": "A", "prompt_wo": unknown{}}, config: attrs{"prompt": "A", "prompt_wo": "A"}, says: []string{invalid}},
		},
		"unknown, null on a live job": {
			{config: a, creates: 1},
			{planned: unread, config: attrs{}, creates: 1},
			{config: a, creates: 1},
		},
		"unknown on a failed job": {
			{config: a, creates: 1},
			{
				before: is("failed"), planned: unread, config: b, creates: 1,
				says: []string{"has the status \"failed\" and cannot accept messages. If the prompt is new", newJob, broken},
			},
			{planned: unread, config: a, says: []string{later, hasFailed, failed}, creates: 1},
			{planned: unread, config: b, once: true, says: []string{later, "The prompt is new, which the plan did not know. It was not sent."}, creates: 1},
		},
		"a job that refuses messages": {
			{config: onceA, creates: 1},
			{config: onceB, says: []string{"the next apply starts a new job with the prompt"}, creates: 1, messages: 1},
			{ignored: prompts, config: fakecli.With(onceB, longer), creates: 1, messages: 1},
			{
				planned: unread, config: onceB, once: true, creates: 1, messages: 1,
				says: []string{"refused a message after it had finished. If the prompt is new", "refused a message after it had finished. The prompt is new"},
			},
			{
				config: onceB, because: []string{`AttributeName("status")`}, creates: 2, messages: 1,
				says: []string{"refused a message after it had finished, so apply replaces it: the prompt goes to another job, which does not see the earlier prompts"},
			},
			{config: onceA, says: []string{"409 Conflict"}, counted: "1 0", creates: 2, messages: 2},
			{config: onceB, creates: 2, messages: 2},
			{config: onceA, says: []string{newJob}, because: []string{`AttributeName("status")`}, creates: 3, messages: 2},
			{config: onceB, says: []string{"409 Conflict"}, creates: 3, messages: 3},
			{before: is("active"), config: onceB, creates: 3, messages: 4},
		},
		"a job that was not found": {
			{config: a, creates: 1},
			{
				before: func(s *harness.Service, c *fakecli.CLI) { s.Forget(c.Get("id").(string)) }, config: b, counted: "? 0",
				says: []string{notFound, notAccepted}, creates: 1, messages: 1,
			},
		},
		"another one in the apply": {
			{config: a, creates: 1},
			{planned: b, config: attrs{"prompt_wo": "C"}, creates: 1, messages: 1},
			{config: attrs{"prompt_wo": "C"}, creates: 1, messages: 1},
		},
		"a new one in the apply only": {
			{config: a, creates: 1},
			{planned: fakecli.With(a, longer), config: fakecli.With(b, longer), says: []string{broken}, creates: 1},
		},
		"the old one in the apply": {
			{config: a, creates: 1},
			{planned: b, config: a, says: []string{broken}, creates: 1},
		},
		"M01 cut short, and refreshed before the message shows": {
			{config: a, creates: 1},
			{config: fakecli.With(stale, short), says: []string{stillRunning}, status: "active", creates: 1, messages: 1},
			{pause: 45 * time.Second, config: stale, status: "completed", creates: 1, messages: 1},
		},
		"M01 cut short, and over soon": {
			{config: a, creates: 1},
			{config: fakecli.With(b, short), says: []string{stillRunning}, status: "active", creates: 1, messages: 1},
			{pause: 2 * time.Second, config: fakecli.With(b, short), status: "completed", creates: 1, messages: 1},
		},
		"M02 over at once": {
			{config: a, creates: 1},
			{config: attrs{"prompt": "[simulate: 0s]"}, says: []string{notSeenActive}, status: "completed", creates: 1, messages: 1},
		},
		"M03 because of the key": { // it says nothing of the job or the prompt
			{config: a, creates: 1},
			{faults: faults(refused(401)), config: b, says: []string{notAccepted}, creates: 1, messages: 1},
			{faults: faults(refused(401)), config: onceA, says: []string{notAccepted}, creates: 1, messages: 2},
			{config: onceA, creates: 1, messages: 3},
		},
		"M03 of a job at work": {
			{config: a, creates: 1},
			{before: is("active"), faults: faults(refused(409)), config: b, says: []string{notAccepted}, creates: 1, messages: 1},
			{before: is("completed"), config: b, creates: 1, messages: 2},
		},
		"M03 of a job that cannot be read": {
			{config: a, creates: 1},
			{faults: faults(refused(409), missingLater), config: b, says: []string{notAccepted}, creates: 1, messages: 1},
			{config: b, creates: 1, messages: 2},
		},
		"M03 of a job at work that is shown as finished": {
			{config: a, creates: 1},
			{config: fakecli.With(stale, unwaited), creates: 1, messages: 1},
			{faults: faults(refused(409)), config: fakecli.With(b, unwaited), says: []string{notAccepted}, creates: 1, messages: 2},
			{config: fakecli.With(b, unwaited), creates: 1, messages: 3},
		},
		"P01 archived":  {{config: attrs{"prompt": "[simulate: archived]"}, says: []string{archived}, status: "archived", creates: 1}},
		"P02 no status": {{config: fakecli.With(attrs{"prompt": "no status"}, unwaited), status: "active", creates: 1}},
		"P03 odd link": {
			{config: fakecli.With(attrs{"prompt": "odd link"}, unwaited), says: []string{oddLink}, creates: 1},
			{config: attrs{"prompt": "odd link"}, says: []string{oddLink, oddLink}, status: "completed", creates: 1}, // by the refresh and the wait
		},
		"P09 not found in the wait": {
			{config: a, creates: 1},
			{faults: faults(missingLater), config: b, says: []string{"ERROR: Agent job not found"}, creates: 1, messages: 1},
			{config: b, status: "completed", creates: 1, messages: 1},
		},
		"P09 not found": { // in each plan
			{config: a, creates: 1},
			{before: unidentified, faults: faults(missing), config: a, says: []string{notFound}, creates: 1},
			{faults: faults(missing), config: a, says: []string{notFound}, creates: 1},
			{config: a, status: "completed", creates: 1},
		},
		"I06 a wait that is not known": {
			{config: fakecli.With(a, unwaited), creates: 1},
			{planned: fakecli.With(a, attrs{"wait": attrs{"enabled": unknown{}}}), config: a, status: "completed", creates: 1},
			{planned: fakecli.With(a, attrs{"wait": unknown{}}), config: a, status: "completed", creates: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Bubble(t, byPrompt, func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
				for i, step := range steps {
					time.Sleep(step.pause)
					if step.before != nil {
						step.before(s, c)
					}
					s.ClearFaults()
					s.Inject(step.faults...)
					if step.planned == nil {
						step.planned = step.config
					}
					c.Ignored = step.ignored
					diags := append(c.Refresh(t.Context()), c.Plan(t.Context(), step.planned)...)
					planned := c.Attribute(c.Planned, "messages")
					if diff := cmp.Diff(step.because, c.Because); diff != "" {
						t.Errorf("step %d: attributes that ask for a replacement (-want +got):\n%s", i, diff)
					}
					c.ConnectTo(t.Context(), provider.New("test", provider.Options{Dial: s.Wire.Dial}), s.Attrs()) // an apply has its own process
					apply := c.Apply
					if step.once {
						apply = c.ApplyPlanned
					}
					diags = append(diags, apply(t.Context(), step.config)...)
					if len(diags) != len(step.says) {
						t.Fatalf("step %d: want %q in:\n%s", i, step.says, fakecli.Text(diags))
					}
					for n, words := range step.says {
						harness.Contains(t, fakecli.Text(diags[n:n+1]), words)
					}
					if c.Tainted {
						t.Errorf("step %d: tainted", i)
					}
					s.Sent(t, step.creates, step.messages)
					if shown := fmt.Sprint(c.Get("status")); step.status != "" && (shown != step.status || s.OnlyJob(t).Status != step.status) {
						t.Errorf("step %d: the status in the state is %s, and the job is %+v, want %s", i, shown, s.OnlyJob(t), step.status)
					}
					counted := strings.NewReplacer(`tftypes.Number<"`, "", `">`, "", "{}", "?").Replace(fmt.Sprint(planned, " ", c.Get("messages")))
					if step.counted != "" && counted != step.counted {
						t.Errorf("step %d: messages, planned and in the state: %s, want %s", i, counted, step.counted)
					}
				}
			})
		})
	}
}
