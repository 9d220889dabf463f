// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
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
