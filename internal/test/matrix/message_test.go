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
	messageFailed      = "ERROR: Message to agent job not accepted"
	messageUnconfirmed = "WARNING: Message to agent job unconfirmed"
	notSeenActive      = "WARNING: Agent job not seen active"
	cutShort           = "ERROR: Agent job still running"
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
	long := turns(simulator.Script{Duration: 40 * time.Second})
	at := func(d time.Duration) func(string, int) simulator.Script { return turns(simulator.Script{Duration: d}) }
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
	// Another reason for the refusal, the prompt, or a job that is or may be active: the next apply sends the message again.
	// Red without: each condition of ReasonOf and isClosed. What else follows a refusal: TestJob_steps.
	for name, refusal := range map[string]struct {
		status int
		then   faultserver.Play
		body   string
	}{
		"401": {status: 401}, "402": {status: 402}, "404": {status: 404}, "400": {status: 400}, "413": {status: 413},
		"307": {status: 307}, "of_a_web_page": {status: 409, body: "<!doctype html>"},
		"while_active": {status: 409, then: shows(nil)}, "then_404": {status: 409, then: faultserver.Answer(404, "{}")},
	} {
		row("M03_"+name, nil, func(m *Matrix) {
			m.Script(faultserver.Message, faultserver.Answer(refusal.status, refusal.body))
			m.plan(Job2())
			m.Always(faultserver.Get, refusal.then)
			m.wantDiags(m.apply(Job2()), messageFailed)
			m.Always(faultserver.Get, nil)
			m.OK(m.Run(Job2()))
			m.wantEnd("completed", 1, 2)
		})
	}
	// Whatever the status says of a prompt, a second prompt shows that it is the job. Red without: refuses.
	row("M03_of_two_prompts", nil, func(m *Matrix) {
		other := update(attrs{"prompt": "Add a tutorial, please"})
		m.Always(faultserver.Message, faultserver.Answer(422, `{"error":"not active"}`))
		for _, job := range []attrs{Job2(), Job2(), other} {
			m.wantDiags(m.Run(job), messageFailed)
		}
		m.OK(m.connect())
		m.wantDiags(m.Run(other), "WARNING: New prompt starts a new agent job")
		m.WantPosts(2, 3)
	})
	// Red without: MayBeStale in isClosed.
	row("M03_of_a_job_that_is_busy_and_shown_as_finished", turns(simulator.Script{Duration: 40 * time.Second, Stale: 30 * time.Second}), func(m *Matrix) {
		m.OK(m.Run(noWait))
		m.Script(faultserver.Message, faultserver.Answer(409, `{"error":"busy"}`))
		m.wantDiags(m.Run(fakecli.With(noWait, attrs{"prompt": "Add a tutorial, please"})), messageFailed)
		m.OK(m.plan(update(attrs{"prompt": "Add a tutorial, please"})))
	})
	// Red without: the new prompt in the state of an unknown outcome (the next apply would send it again).
	row("M04_reset_and_nothing_to_be_seen", long, func(m *Matrix) {
		m.Script(faultserver.Message, faultserver.Reset)
		start := time.Now()
		m.wantDiags(m.Run(Job2()), MessageUnknown)
		m.wantTook(start, 0, time.Second)
		m.wantWords(m.id(), "and nothing shows whether it arrived", "No usable response", "so no apply sends it again", "change the prompt")
		m.wantEnd("completed", 1, 1)
		for range 2 {
			m.OK(m.connect())
			m.wantDiags(m.Run(Job2()), messageUnconfirmed)
			m.wantWords(m.id(), "Check the job in the service's dashboard.", "change the prompt (any visible change will do) and apply: that sends it")
			m.wantEnd("completed", 1, 1)
		}
		m.OK(m.plan(update(attrs{"triggers": attrs{"a": "1"}}))) // a new job
		again := attrs{"prompt": "Add a tutorial, please"}
		m.OK(m.Run(again))
		m.wantEnd("completed", 1, 2)
		m.OK(m.Run(again))
		m.WantPosts(1, 2)
	})
	// Red without: the mark of a message gone once active was seen.
	row("M01_ended_soon_after_active_was_seen", at(3*time.Second), func(m *Matrix) {
		m.OK(m.Run(noWait))
		for _, status := range []string{"active", "completed"} {
			time.Sleep(2 * time.Second)
			m.OK(m.refresh())
			m.WantState(status)
		}
	})
	// The POST's own status says nothing about what GETs show. Red without: Grace of 60 s.
	row("M01_stale_after_a_response_that_said_active", turns(simulator.Script{Duration: 90 * time.Second, Stale: 55 * time.Second}), func(m *Matrix) {
		m.Script(faultserver.Message, faultserver.Effect(shows(attrs{"status": "active"})))
		start := time.Now()
		m.OK(m.Run(Job2()))
		m.wantEnd("completed", 1, 1)
		m.wantTook(start, 90*time.Second, 100*time.Second)
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
	// Red without: the time of the message in the wait that follows later, which warns of nothing.
	row("M02_waited_for_later", at(0), func(m *Matrix) {
		m.OK(m.Run(noWait))
		time.Sleep(55 * time.Second)
		start := time.Now()
		m.OK(m.plan(Job2()))
		m.OK(m.apply(Job2()))
		m.wantTook(start, 5*time.Second, 12*time.Second)
	})
	// Red without: MayBeStale and its time in observed.
	row("M02_refreshed_later", at(0), func(m *Matrix) {
		m.OK(m.Run(noWait))
		for _, status := range []string{"active", "completed"} {
			time.Sleep(35 * time.Second)
			m.OK(m.refresh())
			m.WantState(status)
		}
	})
	// Red without: the mark gone when a wait that is cut short has seen active.
	row("M01_ended_soon_after_a_wait_was_cut_short", at(5*time.Second), func(m *Matrix) {
		m.wantDiags(m.Run(update(attrs{"timeouts": attrs{"update": "4s"}})), cutShort)
		time.Sleep(2 * time.Second)
		m.OK(m.refresh())
		m.WantState("completed")
	})
	return rows
}
