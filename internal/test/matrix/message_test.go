// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

const (
	messageFailed = "ERROR: Message to agent job not accepted"
	notSeenActive = "WARNING: Agent job not seen active"
	cutShort      = "ERROR: Agent job still running"
)

// turns gives the first prompt 20 s and every message this script.
func turns(message simulator.Script) func(string, int) simulator.Script {
	return func(_ string, turn int) simulator.Script {
		if turn == 0 {
			return simulator.Script{Duration: 20 * time.Second}
		}
		return message
	}
}

// readData reads the data source.
func (m *Matrix) readData(config attrs) []*tfprotov6.Diagnostic {
	m.Helper()
	_, diags := m.cli.Data(m.ctx, config)
	return m.note(diags)
}

// messageRows are faults around a follow-up message to a job that has completed.
func messageRows() []Row {
	update := func(more attrs) attrs { return fakecli.With(Job2(), more) }
	noWait := update(attrs{"wait": attrs{"enabled": false}})
	var rows []Row
	row := func(name string, script func(string, int) simulator.Script, test func(m *Matrix)) {
		rows = append(rows, Row{name: name, clock: true, script: script, Test: func(m *Matrix) {
			m.created(Job1())
			test(m)
		}})
	}
	// A run that was cut short just after the message. Red without: MayBeStale in observed; the time of the message in await.
	row("M01_cut_short_and_refreshed_while_stale", turns(simulator.Script{Duration: 90 * time.Second, Stale: 55 * time.Second}), func(m *Matrix) {
		m.wantDiags(m.Run(update(attrs{"timeouts": attrs{"update": "3s"}})), cutShort)
		m.WantState("active")
		m.OK(m.connect())
		time.Sleep(45 * time.Second)
		m.OK(m.refresh())
		m.WantState("active")
		m.resumed(Job2())
		if end := m.Sim.Jobs()[0]; end.Status != "completed" {
			m.Errorf("the job is %s", end.Status)
		}
	})
	// The reason is in the request, or the job is or may be active: the next apply sends the message again.
	// Red without: each condition of isClosed. Those of ReasonOf: TestClassify_everyStatus; what else follows: TestJob_steps.
	for name, refusal := range map[string]struct {
		status int
		then   faultserver.Play
	}{
		"401": {status: 401}, "while_active": {status: 409, then: shows(nil)}, "then_404": {status: 409, then: faultserver.Answer(404, "{}")},
	} {
		row("M03_"+name, nil, func(m *Matrix) {
			m.Script(faultserver.Message, faultserver.Answer(refusal.status, ""))
			m.plan(Job2())
			m.Always(faultserver.Get, refusal.then)
			m.wantDiags(m.apply(Job2()), messageFailed)
			m.Always(faultserver.Get, nil)
			m.OK(m.Run(Job2()))
			m.wantEnd("completed", 1, 2)
		})
	}
	// Red without: MayBeStale in isClosed.
	row("M03_of_a_job_that_is_busy_and_shown_as_finished", turns(simulator.Script{Duration: 40 * time.Second, Stale: 30 * time.Second}), func(m *Matrix) {
		m.OK(m.Run(noWait))
		m.Script(faultserver.Message, faultserver.Answer(409, `{"error":"busy"}`))
		m.wantDiags(m.Run(fakecli.With(noWait, attrs{"prompt": "Add a tutorial, please"})), messageFailed)
		m.OK(m.plan(update(attrs{"prompt": "Add a tutorial, please"})))
	})
	// Red without: the warning in await.
	row("M01_stale_for_longer", turns(simulator.Script{Duration: 100 * time.Second, Stale: 70 * time.Second}), func(m *Matrix) {
		start := time.Now()
		m.wantDiags(m.Run(Job2()), notSeenActive)
		m.wantWords("Job "+m.id()+" in project proj_1 accepted the message", `status "completed"`, "Plan to read it again.")
		m.wantTook(start, time.Minute, 67*time.Second)
		m.WantState("completed")
		time.Sleep(15 * time.Second)
		m.OK(m.Run(Job2()))
		m.wantEnd("completed", 1, 1)
	})
	// Red without: MayBeStale and its time in observed.
	row("M02_refreshed_later", turns(simulator.Script{}), func(m *Matrix) {
		m.OK(m.Run(noWait))
		for _, status := range []string{"active", "completed"} {
			time.Sleep(35 * time.Second)
			m.OK(m.refresh())
			m.WantState(status)
		}
	})
	// Red without: the mark gone when a wait that is cut short has seen active.
	row("M01_ended_soon_after_a_wait_was_cut_short", turns(simulator.Script{Duration: 5 * time.Second}), func(m *Matrix) {
		m.wantDiags(m.Run(update(attrs{"timeouts": attrs{"update": "4s"}})), cutShort)
		time.Sleep(2 * time.Second)
		m.OK(m.refresh())
		m.WantState("completed")
	})
	return rows
}
