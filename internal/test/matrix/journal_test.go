// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// journalRows are what a journal changes in ordinary use, and what it does not.
func journalRows() []Row {
	var rows []Row
	row := func(name string, test func(m *Matrix)) {
		rows = append(rows, Row{name: name, clock: true, Test: test})
	}
	// Red without: pruneJournal; with the key of a message being the prompt alone.
	row("X12_prompts_A_B_A_B", func(m *Matrix) {
		m.nextRun()
		m.created(Job1())
		for _, job := range []attrs{Job2(), Job1(), Job2()} {
			m.nextRun()
			m.wantDiags(m.Run(job), messagePlanned)
		}
		m.WantPosts(1, 3)
		m.nextRun()
		m.OK(m.Run(Job2()))
		m.wantEntries(0)
	})
	// Red without: the job in messageKey.
	row("X07_the_same_message_to_another_job", func(m *Matrix) {
		second := m.other()
		m.OK(m.note(second.Run(m.ctx, Job1())))
		id := m.created(Job1())
		m.nextRun()
		m.undone(func() { m.wantDiags(m.Run(Job2()), messagePlanned) })
		m.nextRun()
		second.Server = m.cli.Server
		m.wantDiags(m.note(second.Run(m.ctx, Job2())), messagePlanned)
		m.WantPosts(2, 2)
		m.wantDiags(m.Run(Job2()), messagePlannedOver, messageFound)
		m.WantPosts(2, 2)
		m.wantAttr("id", id)
	})
	for name, step := range map[string]func(m *Matrix){
		// Red without: pruneJournal in Read and ModifyPlan, also before its return for a destroy.
		"X11_a_refresh_sees_the_job":           func(m *Matrix) { m.refresh() },
		"X11_a_plan_sees_the_job":              func(m *Matrix) { m.plan(Job1()) },
		"X11_a_plan_of_a_destroy_sees_the_job": func(m *Matrix) { m.OK(m.note(m.cli.PlanDestroy(m.ctx))) },
	} {
		row(name, func(m *Matrix) {
			m.nextRun()
			m.created(Job1())
			m.wantEntries(1)
			m.nextRun()
			step(m)
			m.wantEntries(0)
		})
	}
	// Red without: an announcement for each call (the plan that is dropped would be the only one to tell).
	row("X18_announced_although_planned_twice", func(m *Matrix) {
		m.cli.Minimal = true
		id := m.started(Job1())
		m.takesOver(Job1(), id)
		m.nextRun()
		triggered := fakecli.With(Job1(), attrs{"triggers": attrs{"a": "1"}})
		m.undone(func() { id = m.created(triggered) })
		m.nextRun()
		m.takesOver(triggered, id)
		m.nextRun()
		triggered["prompt"] = Job2()["prompt"]
		m.undone(func() { m.wantDiags(m.Run(triggered), messagePlanned) })
		m.nextRun()
		m.wantDiags(m.Run(triggered), messagePlannedOver, messageFound)
		m.WantPosts(2, 1)
	})
	// Red without: the entries of the state in Ref.
	row("X09_an_update_that_another_process_planned", func(m *Matrix) {
		m.nextRun()
		m.created(Job1())
		journal := m.config["journal"]
		m.config["journal"] = attrs{"enabled": false}
		m.nextRun()
		m.wantDiags(m.plan(Job2()), messagePlanned)
		m.config["journal"] = journal
		m.nextRun()
		m.OK(m.apply(Job2()))
		m.WantPosts(1, 1)
		m.wantNoOrphans()
	})
	// "terraform test" with a lost job takes it over, and does not forget it. Red without: the run in Seen and in Destroyed.
	row("X13_a_test_that_took_a_job_over", func(m *Matrix) {
		id := m.started(Job1())
		m.takesOver(Job1(), id)
		m.sameRun()
		m.OK(m.refresh())
		m.sameRun()
		m.OK(m.note(m.cli.Destroy(m.ctx)))
		m.wantEntries(1)
		m.cli.Forget()
		m.nextRun()
		m.takesOver(Job1(), id)
	})
	// Red without: JournalUnusable in notAccepted (the text said that nothing was started, and that applying again starts it).
	row("X16_a_stop_while_the_next_run_waits", func(m *Matrix) {
		release := make(chan struct{})
		m.Always(faultserver.Create, func(x *faultserver.Exchange) { <-release; faultserver.Healthy(x) })
		m.nextRun()
		earlier := m.other()
		m.OK(earlier.Plan(m.ctx, noWait()))
		go earlier.Apply(m.ctx, noWait())
		time.Sleep(time.Second)
		m.nextRun()
		time.AfterFunc(3*time.Second, m.cli.Stop)
		m.wantDiags(m.Run(noWait()), outcomePlanned, createFailed)
		m.wantWords("The prompt was not sent to project proj_1.", nothingSentBecause, "The run was interrupted.", "Apply again: that takes over what an earlier run sent, or else sends the prompt.")
		m.WantState("")
		close(release)
		time.Sleep(time.Second)
		m.nextRun()
		m.takesOver(noWait(), m.Sim.Jobs()[0].ID)
		m.WantPosts(1, 0)
	})
	return rows
}

// planAndApply does not refresh.
func (m *Matrix) planAndApply(job attrs) []*tfprotov6.Diagnostic {
	m.Helper()
	return append(m.plan(job), m.apply(job)...)
}
