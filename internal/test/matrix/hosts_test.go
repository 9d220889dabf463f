// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// hostRows are hosts that drive the provider unlike a CLI of Terraform, such as Pulumi's
// bridge for Terraform providers. One that plans twice is X18, and one that repeats
// failed commands is X19.
func hostRows() (rows []Row) {
	row := func(name string, test func(m *Matrix)) {
		rows = append(rows, Row{name: name, clock: true, Test: func(m *Matrix) {
			m.nextRun()
			test(m)
		}})
	}
	// Nothing tells a lost state from an equal sibling.
	row("H01_one_process_for_all_commands", func(m *Matrix) {
		m.created(Job1())
		m.wantDiags(m.Run(Job2()), messagePlanned)
		m.WantPosts(1, 1)
		m.cli.Forget()
		m.starts(Job1())
		m.WantPosts(2, 1)
	})
	// Red without: the takeover of messages.
	row("H02_the_state_of_a_failed_update_is_dropped", func(m *Matrix) {
		m.created(Job1())
		m.nextRun()
		m.wantDiags(m.plan(Job2()), messagePlanned)
		m.Always(faultserver.Get, faultserver.Answer(401, "")) // ends the wait
		m.undone(func() { m.wantDiags(m.apply(Job2()), "ERROR: Agent job still running") })
		m.Always(faultserver.Get, nil)
		m.nextRun()
		m.wantDiags(m.planAndApply(Job2()), messagePlannedOver, messageFound)
		m.WantPosts(1, 1)
	})
	// Each unit of a stack must have its own journal: this one takes over the job of another.
	row("H03_units_share_a_journal", func(m *Matrix) {
		id := m.created(Job1())
		first := m.other()
		first.State, first.Private = m.cli.State, m.cli.Private
		m.cli.Forget()
		m.nextRun()
		m.takesOver(Job1(), id)
		m.nextRun()
		first.Server = m.cli.Server
		m.OK(m.note(first.Run(m.ctx, Job1())))
		m.WantPosts(1, 0)
	})
	return rows
}
