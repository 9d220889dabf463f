// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

func (m *Matrix) plan(job attrs) []*tfprotov6.Diagnostic {
	m.Helper()
	return m.note(m.cli.Plan(m.ctx, job))
}

func (m *Matrix) apply(job attrs) []*tfprotov6.Diagnostic {
	m.Helper()
	return m.note(m.cli.Apply(m.ctx, job))
}

func (m *Matrix) refresh() []*tfprotov6.Diagnostic {
	m.Helper()
	return m.note(m.cli.Refresh(m.ctx))
}

// created runs a job to its end without a fault.
func (m *Matrix) created(job attrs) (id string) {
	m.Helper()
	if diags := m.Run(job); len(diags) > 0 {
		m.Fatal(fakecli.Text(diags))
	}
	m.WantState("completed")
	return m.id()
}

// id is the job's in the state.
func (m *Matrix) id() string {
	id, _ := m.cli.Get("id").(string)
	return id
}

// wantEnd is WantState and WantPosts.
func (m *Matrix) wantEnd(status string, creates, messages int) {
	m.Helper()
	m.WantState(status)
	m.WantPosts(creates, messages)
}

// wantWords asserts the words in the diagnostics of the last wantDiags.
func (m *Matrix) wantWords(words ...string) {
	m.Helper()
	harness.Contains(m.T, m.text, words...)
}

// refused asserts that a create failed because the service refused its one POST.
func (m *Matrix) refused(diags []*tfprotov6.Diagnostic, words ...string) {
	m.Helper()
	m.wantDiags(diags, createFailed)
	m.wantWords(append(words, "The service refused the prompt for project proj_1, so no job was started.")...)
	m.wantEnd("", 1, 0)
	if jobs := m.Sim.Jobs(); len(jobs) != 0 {
		m.Errorf("the service has %d jobs", len(jobs))
	}
}

// unknownOutcome asserts that a create failed with an unknown outcome after the
// service has read posts POSTs, and that the next apply sends exactly one.
func (m *Matrix) unknownOutcome(diags []*tfprotov6.Diagnostic, posts int, words ...string) {
	m.Helper()
	m.wantDiags(diags, outcomeUnknown)
	m.wantWords(append(words,
		"The prompt was sent to project proj_1, and no response shows whether a job was started. ",
		"Look for the job in the service's dashboard. If it is there, import it: ",
		"terraform (or tofu) import ADDRESS proj_1/JOB_ID")...)
	m.wantEnd("", posts, 0)
	m.wantGets(0)
	m.OK(m.Run(Job1()))
	m.wantEnd("completed", posts+1, 0)
}

// notSent asserts that a create failed and that nothing reached the service.
func (m *Matrix) notSent(diags []*tfprotov6.Diagnostic, words ...string) {
	m.Helper()
	m.wantDiags(diags, createFailed)
	m.wantWords(append(words, "The prompt was not sent to project proj_1, so no job was started.", "Apply again to send the prompt.")...)
	m.wantEnd("", 0, 0)
}

// kept asserts that a create stopped waiting: the id and "active" in the state,
// and a warning.
func (m *Matrix) kept(diags []*tfprotov6.Diagnostic, words ...string) {
	m.Helper()
	m.wantDiags(diags, "WARNING: Agent job still running")
	m.wantWords(append(words, "The job is in the state. The next apply resumes waiting without sending anything.")...)
	m.wantEnd("active", 1, 0)
}

// resumed runs again after the fault and asserts that the job ends without
// another POST.
func (m *Matrix) resumed(job attrs) {
	m.Helper()
	before := m.posts()
	if diags := m.Run(job); fakecli.Failed(diags) {
		m.Error(fakecli.Text(diags))
	}
	m.WantState("completed")
	m.wantPosts(before)
}

// unchanged asserts that a step changes nothing in the state.
func (m *Matrix) unchanged(step func()) {
	m.Helper()
	before := m.cli.State.String()
	step()
	if diff := cmp.Diff(before, m.cli.State.String()); diff != "" {
		m.Errorf("the state was changed (-before +after):\n%s", diff)
	}
}

// wantPrompt asserts that the state has the job's prompt, and none that is write-only.
func (m *Matrix) wantPrompt(job attrs) {
	m.Helper()
	if m.cli.PromptWO {
		job = nil
	}
	m.wantAttr("prompt", job["prompt"])
}

// wantNoWords asserts what the diagnostics of the last wantDiags do not say.
func (m *Matrix) wantNoWords(words ...string) {
	m.Helper()
	for _, w := range words {
		if strings.Contains(m.text, w) {
			m.Errorf("%q is in %q", w, m.text)
		}
	}
}

// wantTook asserts the time since start.
func (m *Matrix) wantTook(start time.Time, least, most time.Duration) {
	m.Helper()
	if took := time.Since(start); took < least || took > most {
		m.Errorf("it took %s, want %s to %s", took, least, most)
	}
}

// wantPrompts asserts that the service has one job, which got n prompts.
func (m *Matrix) wantPrompts(n int) {
	m.Helper()
	if jobs := m.Sim.Jobs(); len(jobs) != 1 || len(jobs[0].Prompts) != n {
		m.Errorf("jobs: %+v, want one with %d prompts", jobs, n)
	}
}

// wantGets asserts how often the service was polled or read.
func (m *Matrix) wantGets(n int) {
	m.Helper()
	if gets := m.Count(faultserver.Get); gets != n {
		m.Errorf("%d GETs, want %d", gets, n)
	}
}

// wantDials asserts how many connections were tried.
func (m *Matrix) wantDials(n int) {
	m.Helper()
	if dials := m.Dials(); dials != n {
		m.Errorf("%d connections, want %d", dials, n)
	}
}
