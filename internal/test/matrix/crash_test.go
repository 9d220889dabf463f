// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// crashRows are what a run makes of the records of one that was killed, or whose state is lost. Package chaos kills the real thing.
func crashRows() []Row {
	return []Row{
		// Nothing is paid that nobody asked for. What follows is N25.
		{name: "X04_the_job_has_failed", clock: true, Test: func(m *Matrix) {
			m.Sim.SetStatus(m.started(noWait()), "failed")
			m.wantDiags(m.Run(Job1()), adoptPlanned, adopted, jobFailed)
			m.WantPosts(1, 0)
		}},
		// Red without: isKnown in planCreate.
		{name: "X04_the_job_may_be_for_other_triggers", clock: true, Test: func(m *Matrix) {
			m.started(Job1())
			m.OK(m.plan(fakecli.With(Job1(), attrs{"triggers": unknown{}})))
		}},
		// Red without: IsPromptUnknown in judgeCreate.
		{name: "X04_the_prompt_is_not_known", clock: true, Test: func(m *Matrix) {
			id := m.started(Job1())
			m.wantDiags(m.plan(attrs{"prompt": unknown{}}), adoptPlanned)
			m.wantWords("The new prompt is not known yet. If it is the same, apply adopts the job without sending anything.")
			m.again()
			m.wantDiags(m.apply(Job1()), adoptPlanned, adopted)
			m.wantJob(id)
		}},
		// Red without: the time of the earlier run's message (the wait would last a minute more).
		{name: "X04_the_message_was_accepted_long_ago", clock: true, script: turns(simulator.Script{}), Test: func(m *Matrix) {
			m.nextRun()
			m.created(Job1())
			m.nextRun()
			m.undone(func() {
				m.wantDiags(m.Run(fakecli.With(Job2(), attrs{"wait": attrs{"enabled": false}})), messagePlanned)
			})
			time.Sleep(time.Minute)
			m.nextRun()
			start := time.Now()
			m.wantDiags(m.Run(Job2()), messageFound, messageFound)
			m.wantTook(start, 0, time.Second)
			m.wantEnd("completed", 1, 1)
		}},
		{name: "X04_the_job_has_failed_and_is_kept", clock: true, Test: func(m *Matrix) {
			m.Sim.SetStatus(m.started(noWait()), "failed")
			m.wantDiags(m.Run(fakecli.With(Job1(), attrs{"wait": attrs{"on_failure": "warn"}})), adoptPlanned, adopted, "WARNING: Agent job failed")
			m.wantEnd("failed", 1, 0)
		}},
	}
}

// replacementRows are jobs that a person replaces, which never come back, and failed ones, which nothing but a person replaces.
func replacementRows() (rows []Row) {
	row := func(name string, test func(m *Matrix, id string)) {
		rows = append(rows, Row{name: name, clock: true, Test: func(m *Matrix) {
			m.nextRun()
			id := m.created(Job1())
			m.nextRun()
			test(m, id)
		}})
	}
	// forced plans a replacement of the job.
	forced := func(m *Matrix, job attrs, announced ...string) {
		m.cli.Forced = true
		m.wantDiags(append(m.refresh(), m.plan(job)...), announced...)
		m.cli.Forced = false
	}
	// Red without: the release of planCreate, or of Destroyed.
	row("N22_replace", func(m *Matrix, id string) {
		forced(m, Job1())
		m.wantRecord(id, false, true)
		m.nextRun()
		m.OK(m.apply(Job1()))
		m.wantEnd("completed", 2, 0)
		m.wantRecord(m.id(), false, false)
		m.nextRun()
		m.OK(m.Run(Job1()))
	})
	// The create comes first, and knows of no job that it replaces. Red without: the release of planCreate.
	row("N22_replace_with_create_before_destroy", func(m *Matrix, id string) {
		forced(m, Job1())
		m.nextRun()
		m.beforeDestroy(Job1())
		m.WantPosts(2, 0)
		m.wantRecord(m.id(), false, false) // the delete of the earlier job has not released it
		m.nextRun()
		m.OK(m.Run(Job1()))
		if m.id() == id {
			m.Error("the job has come back")
		}
	})
	// Red without: the same.
	row("N22_other_prompt_and_replace_with_create_before_destroy", func(m *Matrix, _ string) {
		forced(m, Job2(), messagePlanned) // before the CLI tells of the replacement
		m.nextRun()
		m.beforeDestroy(Job2())
		m.WantPosts(2, 0)
	})
	// Red without: isInState in leave; Replaces in judgeCreate.
	row("N22_triggers_with_create_before_destroy", func(m *Matrix, _ string) {
		m.OK(m.plan(triggered(Job1(), "2")))
		m.nextRun()
		m.beforeDestroy(triggered(Job1(), "2"))
		m.WantPosts(2, 0)
		m.nextRun()
		m.OK(m.Run(triggered(Job1(), "2")))
	})
	// Red without: the status of the job in planCreate.
	row("N22_taint", func(m *Matrix, id string) {
		m.cli.Tainted = true
		m.nextRun()
		m.OK(append(m.refresh(), m.plan(Job1())...))
		m.wantRecord(id, false, true)
		m.nextRun()
		m.OK(m.apply(Job1()))
		m.wantEnd("completed", 2, 0)
	})
	// Red without: Retake.
	row("N22_a_plan_that_is_not_applied", func(m *Matrix, id string) {
		forced(m, Job1())
		m.wantRecord(id, false, true)
		m.nextRun()
		m.OK(m.Run(Job1()))
		m.wantRecord(id, false, false)
		m.cli.Forget()
		m.nextRun()
		m.adopts(Job1(), id)
	})
	// Until a plan takes it back, a lost state pays again: the exception of the guide.
	row("N22_a_plan_that_is_not_applied_and_a_lost_state", func(m *Matrix, _ string) {
		forced(m, Job1())
		m.cli.Forget()
		m.nextRun()
		m.starts(Job1())
		m.WantPosts(2, 0)
	})
	// Its job is adopted, however often the replacement is planned again. Red without: the job in Release.
	row("N22_a_killed_replacement", func(m *Matrix, id string) {
		forced(m, Job1())
		m.nextRun()
		second := ""
		m.undone(func() { m.OK(m.apply(Job1())); second = m.id() })
		m.nextRun()
		forced(m, Job1(), otherJob)
		m.wantRecord(second, false, false)
		m.nextRun()
		m.wantDiags(m.apply(Job1()), adopted)
		m.wantJob(second)
		m.WantPosts(2, 0)
		if second == id {
			m.Error("nothing was replaced")
		}
	})
	// Red without: the release in Destroyed, and the conditions of it.
	row("N23_a_destroy_leaves_what_is_not_its_own", func(m *Matrix, id string) {
		m.undone(func() { m.starts(triggered(Job1(), "2")) })
		second := m.record().Job
		m.nextRun()
		m.OK(m.note(m.cli.Destroy(m.ctx)))
		m.wantRecord(second, false, false)
		m.nextRun()
		m.adopts(triggered(Job1(), "2"), second)
		if second == id {
			m.Error("nothing was replaced")
		}
	})
	// Red without: the same, for an unknown create.
	row("N23_a_destroy_leaves_an_unknown_create", func(m *Matrix, _ string) {
		m.undone(func() { m.lostResponse(triggered(Job1(), "2")) })
		m.nextRun()
		m.OK(m.note(m.cli.Destroy(m.ctx)))
		m.wantRecord("", true, false)
		m.nextRun()
		m.wantDiags(m.Run(Job1()), unknownPlanned, outcomeUnknown)
		m.WantPosts(2, 0)
	})
	// Two states have the job: the name is that of the one that has adopted it. Red without: the adoption in release.
	row("N23_a_destroy_of_a_job_that_another_state_has_adopted", func(m *Matrix, id string) {
		earlier := *m.cli
		m.cli.Forget()
		m.nextRun()
		m.adopts(Job1(), id)
		m.nextRun()
		earlier.Server = m.cli.Server
		m.OK(m.note(earlier.Destroy(m.ctx)))
		m.wantRecord(id, false, false)
		m.nextRun()
		m.OK(m.note(m.cli.Destroy(m.ctx)))
		m.wantRecord(id, false, true)
	})
	// Red without: assign; releaseEarlierName.
	row("N24_a_name_is_changed", func(m *Matrix, id string) {
		m.cli.Name = "b"
		m.OK(m.Run(Job1()))
		m.wantJob(id)
		if r := m.records(); r["b"] == nil || r["b"].Job != id || !r["a"].Released {
			m.Errorf("records: %+v", r)
		}
		m.nextRun()
		m.OK(m.Run(Job1()))
		m.cli.Name = "a"
		m.nextRun()
		m.OK(m.Run(Job1()))
		m.wantRecord(id, false, false)
		m.WantPosts(1, 0)
	})
	// Red without: the name in Wanted of a message.
	row("N24_a_name_is_changed_with_a_message", func(m *Matrix, id string) {
		m.cli.Name = "b"
		m.wantDiags(m.Run(Job2()), messagePlanned)
		m.wantJob(id)
		if r := m.records(); r["b"] == nil || r["b"].Job != id || !r["a"].Released {
			m.Errorf("records: %+v", r)
		}
	})
	// Red without: OtherJob in assign.
	row("N24_two_names_are_exchanged", func(m *Matrix, id string) {
		second := m.other()
		m.OK(m.note(second.Run(m.ctx, Job1())))
		m.nextRun()
		second.Server = m.cli.Server
		second.Load(m.ctx, second.Instance)
		m.cli.Name, second.Name = "other", "a"
		for _, c := range []*fakecli.CLI{m.cli, second} {
			m.wantDiags(m.note(c.Run(m.ctx, Job1())), nameTakenPlanned, nameTaken)
		}
		m.wantJob(id)
		m.WantPosts(2, 0)
	})
	// An import decides about an unknown create. Red without: isImported in Assign.
	rows = append(rows, Row{name: "N24_an_import_after_an_unknown_create", clock: true, Test: func(m *Matrix) {
		m.nextRun()
		id := m.lostResponse(Job1())
		time.Sleep(time.Minute)
		m.OK(m.imports(harness.Project + "/" + id))
		m.wantDiags(m.Run(Job1()), promptRecorded)
		m.wantRecord(id, false, false)
		m.nextRun()
		m.OK(m.Run(Job1()))
		m.WantPosts(1, 0)
	}})
	for _, retries := range []bool{false, true} {
		name, onFailure := "N25_a_failed_job", "error"
		if retries {
			name, onFailure = "N25_a_failed_job_that_is_retried", "retry"
		}
		rows = append(rows, Row{name: name, clock: true, script: harness.Always(simulator.Script{Duration: 20 * time.Second, Status: "failed"}), Test: func(m *Matrix) {
			m.nextRun()
			job := fakecli.With(Job1(), attrs{"wait": attrs{"on_failure": onFailure}})
			m.wantDiags(m.Run(job), jobFailed)
			id := m.id()
			for n := range 3 {
				m.nextRun()
				diags := m.Run(job)
				if !m.cli.Tainted || (m.id() != id) != retries {
					m.Errorf("job %s, tainted %t", m.id(), m.cli.Tainted)
				}
				if id = m.id(); retries { // Red without: RetryFailed; retries in planCreate.
					m.wantDiags(diags, jobFailed)
					m.WantPosts(n+2, 0)
					continue
				}
				// Red without: keepsFailed in planCreate; isKept in Destroyed.
				m.wantDiags(diags, stillFailed, jobFailed)
				m.wantWords("triggers = { attempt = 2 }", `on_failure = "retry"`, "-replace cannot be told from this")
				m.WantPosts(1, 0)
			}
			creates, _ := m.posts()
			m.nextRun()
			m.wantDiags(m.Run(triggered(job, "2")), jobFailed)
			m.WantPosts(creates+1, 0)
			m.nextRun()
			m.wantDiags(m.Run(fakecli.With(triggered(job, "2"), Job2())), jobFailed)
			m.WantPosts(creates+2, 0)
			m.nextRun()
			m.OK(m.note(m.cli.Destroy(m.ctx))) // a plain destroy
			m.nextRun()
			m.wantDiags(m.Run(fakecli.With(triggered(job, "2"), Job2())), jobFailed)
			m.WantPosts(creates+3, 0)
		}})
	}
	return rows
}

// beforeDestroy applies a replacement with create_before_destroy, in a process that knows nothing of the job that is replaced
// but the state.
func (m *Matrix) beforeDestroy(job attrs) {
	m.Helper()
	deposed := *m.cli
	m.cli.Forget()
	m.OK(m.note(m.cli.PlanAgain(m.ctx, job)))
	m.OK(m.note(m.cli.ApplyPlanned(m.ctx, job)))
	m.OK(m.note(deposed.Delete(m.ctx, nil)))
}
