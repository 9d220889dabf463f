// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// crashRows are what a run makes of the journal of one that was killed, or whose
// state is lost. Package chaos kills the real thing.
func crashRows() []Row {
	const (
		cannotLook = "the job cannot be read now. The prompt was not sent again."
		applyAgain = "Apply again once the service responds."
	)
	return []Row{
		// Nothing is paid that nobody asked for: only the apply after a failed one starts another job.
		{name: "X04_the_job_has_failed", clock: true, Test: func(m *Matrix) {
			m.Sim.SetStatus(m.started(noWait()), "failed")
			m.wantDiags(m.Run(Job1()), takeOverPlanned, tookOver, "ERROR: Agent job failed")
			m.WantPosts(1, 0)
			m.nextRun()
			m.starts(Job1())
			m.wantNoOrphans()
		}},
		// A wrong key has the same effect. Red without: Unreadable for a 404 in takeOver; isGivenUp in it.
		{name: "X04_the_job_is_unknown", clock: true, Test: func(m *Matrix) {
			id := m.started(noWait())
			m.Sim.Forget(id)
			for range 2 {
				m.wantDiags(m.plan(Job1()), takeOverPlanned)
				time.Sleep(time.Hour)
				m.wantDiags(m.apply(Job1()), unreadable)
				m.wantWords(id, cannotLook, "404 Not Found", applyAgain, "If the job no longer exists, delete "+m.entry()+", or set journal { forget")
				m.wantEnd("", 1, 0)
				m.nextRun()
			}
			m.forget(m.entryID())
			m.nextRun()
			m.wantDiags(m.plan(Job1()), takeOverPlanned)
			m.OK(m.apply(Job1()))
			m.wantEnd("completed", 2, 0)
			m.wantNoOrphans()
		}},
		// Red without: the triggers in earlierRequests.
		{name: "X04_the_job_may_be_for_other_triggers", clock: true, Test: func(m *Matrix) {
			m.started(Job1())
			m.OK(m.plan(fakecli.With(Job1(), attrs{"triggers": unknown{}})))
		}},
		// Red without: the record before the POST; takeOver of messages.
		{name: "X04_no_answer_to_the_message_had_come", clock: true, Test: func(m *Matrix) {
			id := m.created(Job1())
			m.nextRun()
			m.Script(faultserver.Message, func(x *faultserver.Exchange) { m.cli.Stop(); faultserver.EOF(x) })
			m.undone(func() { m.wantDiags(m.Run(Job2()), messagePlanned, MessageUnknown) })
			m.wantEntries(1)
			m.nextRun()
			m.wantDiags(m.Run(Job2()), outcomePlanned, MessageUnknown)
			m.wantWords("job "+id, "and nothing shows whether it arrived.")
			m.wantDiags(m.Run(Job2()), messageUnconfirmed)
			m.WantPosts(1, 1)
			m.wantNoOrphans()
		}},
		// Red without: the time of the earlier run's message (the wait would last a minute more).
		{name: "X04_the_message_was_accepted_long_ago", clock: true, script: turns(simulator.Script{}), Test: func(m *Matrix) {
			m.created(Job1())
			m.nextRun()
			m.undone(func() {
				m.wantDiags(m.Run(fakecli.With(Job2(), attrs{"wait": attrs{"enabled": false}})), messagePlanned)
			})
			time.Sleep(time.Minute)
			m.nextRun()
			start := time.Now()
			m.wantDiags(m.Run(Job2()), messagePlannedOver, messageFound)
			m.wantTook(start, 0, time.Second)
			m.wantEnd("completed", 1, 1)
		}},
		{name: "X04_the_job_has_failed_and_is_kept", clock: true, Test: func(m *Matrix) {
			m.Sim.SetStatus(m.started(noWait()), "failed")
			m.wantDiags(m.Run(fakecli.With(Job1(), attrs{"wait": attrs{"on_failure": "warn"}})), takeOverPlanned, tookOver, "WARNING: Agent job failed")
			m.wantEnd("failed", 1, 0)
		}},
	}
}
