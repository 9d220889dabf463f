// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// journalRows are what a journal changes in ordinary use, and what it does not.
func journalRows() []Row {
	var rows []Row
	row := func(name string, test func(m *Matrix)) {
		rows = append(rows, Row{name: name, clock: true, Test: test})
	}
	// Red without: the new request in place of the last one, in accept.
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
		m.wantRecord(m.id(), false, false)
	})
	// Red without: the name in key.
	row("X07_equal_prompts_of_two_names", func(m *Matrix) {
		m.nextRun()
		id := m.created(Job1())
		second := m.other()
		m.OK(m.note(second.Run(m.ctx, Job1())))
		m.nextRun()
		m.undone(func() { m.wantDiags(m.Run(Job2()), messagePlanned) })
		m.nextRun()
		second.Server = m.cli.Server
		m.wantDiags(m.note(second.Run(m.ctx, Job2())), messagePlanned)
		m.WantPosts(2, 2)
		m.wantDiags(m.Run(Job2()), messageFound, messageFound)
		m.WantPosts(2, 2)
		m.wantJob(id)
	})
	// Red without: an announcement for each call (the plan that is dropped would be the only one to tell).
	row("X18_announced_although_planned_twice", func(m *Matrix) {
		m.cli.Minimal = true
		id := m.started(Job1())
		m.adopts(Job1(), id)
		m.nextRun()
		m.undone(func() { id = m.created(triggered(Job1(), "1")) })
		m.nextRun()
		m.wantDiags(m.Run(triggered(Job1(), "1")), adoptPlanned, adopted)
		m.wantJob(id)
		m.nextRun()
		job := fakecli.With(triggered(Job1(), "1"), Job2())
		m.undone(func() { m.wantDiags(m.Run(job), messagePlanned) })
		m.nextRun()
		m.wantDiags(m.Run(job), messageFound, messageFound)
		m.WantPosts(2, 1)
	})
	// Red without: the version of the record in the state being a hint only.
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
		m.wantRecord(m.id(), false, false)
	})
	// A test beside production adopts no job of it. Red without: the run in the scope of a test.
	row("N26_a_test_beside_production", func(m *Matrix) {
		id := m.started(Job1())
		m.process.Command = "test"
		m.OK(m.connect())
		m.starts(Job1())
		if m.id() == id {
			m.Error("the test has the job of the state")
		}
		m.wantDiags(m.Run(Job2()), messagePlanned)
		m.OK(m.note(m.cli.Destroy(m.ctx)))
		m.nextRun()
		m.adopts(Job1(), id)
	})
	// Two runs of one test have nothing in common, nor have two tests at once. Red without: the same.
	row("N26_two_tests", func(m *Matrix) {
		for range 2 {
			m.testRun()
			m.cli.Forget()
			m.starts(Job1())
		}
	})
	// The state was moved from disk to a bucket, or the journal to another place. Red without: FindElsewhere.
	row("N27_a_record_elsewhere", func(m *Matrix) {
		id := m.started(Job1())
		m.config["journal"] = attrs{"url": m.TempDir() + "?state=a"}
		m.nextRun()
		m.wantDiags(m.Run(Job1()), "WARNING: Name has a record in another journal", "ERROR: Name has a record in another journal")
		m.wantWords("job "+id, m.record().Where, "import ADDRESS proj_1/"+id, "AGENT_JOURNAL_FORGET="+m.record().Last.ID)
		m.WantPosts(1, 0)
		m.forget(m.record().Last.ID)
		m.nextRun()
		m.starts(Job1())
		m.nextRun()
		m.OK(m.Run(Job1()))
	})
	// Red without: JournalUnusable in NotAccepted (the text said that nothing was started, and that applying again starts it).
	row("X16_a_stop_while_the_next_run_waits", func(m *Matrix) {
		m.nextRun()
		release := m.inFlight(noWait())
		time.AfterFunc(3*time.Second, m.cli.Stop)
		m.wantDiags(m.Run(noWait()), requestPlanned, createFailed)
		m.wantWords("The prompt was not sent to project proj_1.", "only the journal can show", "The run was interrupted.",
			"Apply again: that adopts what an earlier run has started, or else sends the prompt.")
		m.WantState("")
		release()
		m.nextRun()
		m.adopts(noWait(), m.Sim.Jobs()[0].ID)
		m.WantPosts(1, 0)
	})
	return rows
}

// testRun starts a run of "terraform test".
func (m *Matrix) testRun() {
	m.Helper()
	m.nextRun()
	m.process.Command = "test"
	m.OK(m.connect())
}

// planAndApply does not refresh.
func (m *Matrix) planAndApply(job attrs) []*tfprotov6.Diagnostic {
	m.Helper()
	return append(m.plan(job), m.apply(job)...)
}
