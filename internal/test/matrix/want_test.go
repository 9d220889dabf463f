// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

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

// resumed runs again after the fault, in another process, and asserts that the job ends without another POST.
func (m *Matrix) resumed(job attrs) {
	m.Helper()
	creates, messages := m.posts()
	m.OK(m.connect())
	if diags := m.Run(job); fakecli.Failed(diags) {
		m.Error(fakecli.Text(diags))
	}
	m.wantEnd("completed", creates, messages)
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

// wantTook asserts the time since start.
func (m *Matrix) wantTook(start time.Time, least, most time.Duration) {
	m.Helper()
	if took := time.Since(start); took < least || took > most {
		m.Errorf("it took %s, want %s to %s", took, least, most)
	}
}

// wantDials asserts how many connections were tried.
func (m *Matrix) wantDials(n int) {
	m.Helper()
	if dials := m.Dials(); dials != n {
		m.Errorf("%d connections, want %d", dials, n)
	}
}
