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
	// Nothing tells a lost state from a second resource with the name.
	row("H01_one_process_for_all_commands", func(m *Matrix) {
		m.OK(m.note(m.cli.Run(m.ctx, Job1())))
		m.wantDiags(m.note(m.cli.Run(m.ctx, Job2())), messagePlanned)
		m.WantPosts(1, 1)
		m.cli.Forget()
		m.wantDiags(m.note(m.cli.Run(m.ctx, Job1())), duplicateName)
		m.WantPosts(1, 1)
	})
	// Red without: Adopt in judgeMessage.
	row("H02_the_state_of_a_failed_update_is_dropped", func(m *Matrix) {
		m.created(Job1())
		m.nextRun()
		m.wantDiags(m.plan(Job2()), messagePlanned)
		m.Always(faultserver.Get, faultserver.Answer(401, "")) // ends the wait
		m.undone(func() { m.wantDiags(m.apply(Job2()), "ERROR: Agent job still running") })
		m.Always(faultserver.Get, nil)
		m.nextRun()
		m.wantDiags(m.planAndApply(Job2()), messageFound, messageFound)
		m.WantPosts(1, 1)
	})
	// Each unit of a stack must have its own journal, or names of its own: this one adopts the job of another.
	row("H03_units_share_a_journal", func(m *Matrix) {
		id := m.created(Job1())
		first := m.same()
		first.State, first.Private = m.cli.State, m.cli.Private
		m.cli.Forget()
		m.nextRun()
		m.adopts(Job1(), id)
		m.nextRun()
		first.Server = m.cli.Server
		m.wantDiags(m.note(first.Run(m.ctx, Job1())), "WARNING: Agent job was adopted by another run")
		m.WantPosts(1, 0)
	})
	return rows
}
