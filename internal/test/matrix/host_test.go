// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// update is a command of a host like Pulumi's bridge for Terraform providers, or
// Crossplane: it does not refresh, and drops the state of an update that returns
// an error.
func (m *Matrix) update(job attrs) []*tfprotov6.Diagnostic {
	m.Helper()
	before := *m.cli
	diags := m.plan(job)
	if !fakecli.Failed(diags) {
		diags = append(diags, m.apply(job)...)
	}
	if fakecli.Failed(diags) {
		m.cli.State, m.cli.Private, m.cli.Identity = before.State, before.Private, before.Identity
	}
	return diags
}

// hostRows are hosts that drop the state of an update that returns an error.
func hostRows() []Row {
	prepared := func(m *Matrix) {
		m.named()
		m.created(Job1())
		m.nextRun()
		m.Script(faultserver.Get, faultserver.Answer(401, "")) // ends the wait
		m.wantDiags(m.update(Job2()), messagePlanned, "ERROR: Agent job still running")
		m.wantPrompt(Job1())
	}
	return []Row{
		// Red without: the takeover of messages.
		{name: "X09_host_that_drops_the_state_of_a_failed_update", clock: true, Test: func(m *Matrix) {
			prepared(m)
			m.cleanly() // a new process of the host
			m.wantDiags(m.update(Job2()), messagePlannedOver, messageFound)
			m.wantEnd("completed", 1, 1)
		}},
		// All that one parent process does is one run, which never takes its own
		// messages over: there is no second update in a run of a CLI.
		{name: "X09_host_that_drops_the_state_and_stays", clock: true, Test: func(m *Matrix) {
			prepared(m)
			m.sameRun()
			m.wantDiags(m.update(Job2()), messagePlanned)
			m.WantPosts(1, 2)
		}},
	}
}
