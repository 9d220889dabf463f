// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

const (
	messagePlanned     = "WARNING: New prompt is sent to the existing agent job"
	messageFailed      = "ERROR: Failed to send message to agent job"
	messageUnconfirmed = "WARNING: Message to agent job unconfirmed"
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

// messaged runs job2 and asserts that it took between least and most.
func (m *Matrix) messaged(least, most time.Duration) {
	m.Helper()
	start := time.Now()
	m.wantDiags(m.Run(Job2()), messagePlanned)
	if took := time.Since(start); took < least || took > most {
		m.Errorf("it took %s, want %s to %s", took, least, most)
	}
	m.WantState("completed")
	m.WantPosts(1, 1)
	m.wantPrompt(Job2())
	m.OK(m.Run(Job2()))
	m.WantPosts(1, 1)
}

// messageRows are faults around a follow-up message.
func messageRows() []Row {
	noWait := attrs{"wait": attrs{"enabled": false}}
	stale := turns(simulator.Script{Duration: 40 * time.Second, Stale: 8 * time.Second})
	longTurn := turns(simulator.Script{Duration: 40 * time.Second})
	acceptedAfter := func(name string, fault faultserver.Play) Row {
		// Red without: MessageEffect (the outcome would be unknown).
		return Row{name: "M04_" + name, clock: true, script: longTurn, Test: func(m *Matrix) {
			m.created(Job1())
			m.Script(faultserver.Message, faultserver.Effect(fault))
			m.messaged(40*time.Second, 50*time.Second)
		}}
	}
	rows := []Row{
		// Red without: After: wait.Messaged (a terminal status counts only once active was seen).
		{name: "M01_answered_with_the_old_record", clock: true, script: stale, Test: func(m *Matrix) {
			m.created(Job1())
			m.messaged(40*time.Second, 50*time.Second)
		}},
		{name: "M01_answered_active_and_get_shows_the_old_end", clock: true, script: stale, Test: func(m *Matrix) {
			m.created(Job1())
			m.Script(faultserver.Message, faultserver.Effect(shows(nil)))
			m.messaged(40*time.Second, 50*time.Second)
		}},
		// Red without: MayBeStale in updateMarks, for a run that was cut short just after the message.
		{name: "M01_cut_short_and_refreshed_while_stale", clock: true, script: stale, Test: func(m *Matrix) {
			m.created(Job1())
			job := fakecli.With(Job2(), attrs{"timeouts": attrs{"update": "3s"}})
			m.wantDiags(m.Run(job), messagePlanned, "ERROR: Agent job still running")
			m.WantState("active")
			m.OK(m.connect())
			m.OK(m.refresh())
			m.WantState("active")
			m.resumed(Job2())
			if end := m.Sim.Jobs()[0]; end.Status != "completed" {
				m.Errorf("the job is %s", end.Status)
			}
		}},
		// Red without: the settle time in progress.classify (it would wait until the timeout).
		{name: "M02_ended_before_active_was_seen", clock: true, script: turns(simulator.Script{}), Test: func(m *Matrix) {
			m.created(Job1())
			m.messaged(10*time.Second, 13*time.Second)
		}},
		acceptedAfter("reset_after_the_message_arrived", faultserver.Reset),
		acceptedAfter("eof_after_the_message_arrived", faultserver.EOF),
		acceptedAfter("502_after_the_message_arrived", faultserver.Answer(502, "")),
		acceptedAfter("empty_answer_after_the_message_arrived", faultserver.Answer(200, "")),
		acceptedAfter("record_of_another_job_after_the_message_arrived", faultserver.Answer(200, JobJSON(attrs{"id": "job_other"}))),
		// Red without: the new prompt in the state of an unknown outcome (the next apply would send it again).
		{name: "M04_reset_and_nothing_to_be_seen", clock: true, script: longTurn, Test: func(m *Matrix) {
			m.created(Job1())
			id := m.cli.Get("id").(string)
			m.Script(faultserver.Message, faultserver.Reset)
			start := time.Now()
			diags := m.Run(Job2())
			m.wantDiags(diags, messagePlanned, MessageUnknown)
			if took := time.Since(start); took > wait.Settle+time.Second {
				m.Errorf("looked for its effect for %s", took)
			}
			m.wantWords(diags, id, "no answer tells whether it arrived", "not sent a second time by itself", "change the prompt")
			m.WantState("completed")
			m.WantPosts(1, 1)
			for range 2 {
				m.OK(m.connect())
				diags = m.Run(Job2())
				m.wantDiags(diags, messageUnconfirmed)
				m.wantWords(diags, id, "Look at the job at the service.", "change the prompt (a word is enough) and apply: that sends it")
				m.WantState("completed")
				m.WantPosts(1, 1)
			}
			m.OK(m.plan(fakecli.With(Job2(), attrs{"triggers": attrs{"a": "1"}}))) // a new job
			again := attrs{"prompt": "Add a tutorial, please"}
			m.wantDiags(m.Run(again), messagePlanned)
			m.WantState("completed")
			m.WantPosts(1, 2)
			m.OK(m.Run(again))
			m.WantPosts(1, 2)
		}},
		// Red without: the look at unconfirmed in updateMarks.
		{name: "M04_reset_and_the_effect_is_seen_later", clock: true, script: longTurn, Test: func(m *Matrix) {
			m.created(Job1())
			m.Script(faultserver.Message, faultserver.Reset)
			m.wantDiags(m.Run(Job2()), messagePlanned, MessageUnknown)
			m.Sim.SetStatus(m.cli.Get("id").(string), "active")
			m.OK(m.Run(fakecli.With(Job2(), noWait)))
			m.WantState("active")
			m.WantPosts(1, 1)
		}},
		// Red without: the mark of a message gone once active was seen.
		{name: "M01_ended_soon_after_active_was_seen", clock: true, script: turns(simulator.Script{Duration: 3 * time.Second}), Test: func(m *Matrix) {
			m.created(Job1())
			m.wantDiags(m.Run(fakecli.With(Job2(), noWait)), messagePlanned)
			for _, status := range []string{"active", "completed"} {
				time.Sleep(2 * time.Second)
				m.OK(m.refresh())
				m.WantState(status)
			}
		}},
		// Red without: the time of the message in the wait that follows later, of the job and of a data source.
		{name: "M02_waited_for_nine_seconds_later", clock: true, script: turns(simulator.Script{}), Test: func(m *Matrix) {
			m.created(Job1())
			m.wantDiags(m.Run(fakecli.With(Job2(), noWait)), messagePlanned)
			time.Sleep(9 * time.Second)
			start := time.Now()
			_, diags := m.cli.Data(m.ctx, attrs{"id": m.cli.Get("id"), "wait": attrs{"enabled": true}})
			m.OK(m.note(diags))
			m.wantDiags(m.plan(Job2()), "WARNING: Agent job is still running")
			m.OK(m.apply(Job2()))
			if took := time.Since(start); took > 7*time.Second {
				m.Errorf("it took %s", took)
			}
		}},
		// Red without: the mark gone when a wait that is cut short has seen active.
		{name: "M01_ended_soon_after_a_wait_was_cut_short", clock: true, script: turns(simulator.Script{Duration: 5 * time.Second}), Test: func(m *Matrix) {
			m.created(Job1())
			m.wantDiags(m.Run(fakecli.With(Job2(), attrs{"timeouts": attrs{"update": "4s"}})), messagePlanned, "ERROR: Agent job still running")
			time.Sleep(2 * time.Second)
			m.OK(m.refresh())
			m.WantState("completed")
		}},
		// A job that was active before shows nothing by being active. Red without: job.ended in sendMessage.
		{name: "M04_reset_while_the_job_was_active", clock: true, script: longTurn, Test: func(m *Matrix) {
			m.OK(m.Run(fakecli.With(Job1(), noWait)))
			m.Script(faultserver.Message, faultserver.Effect(faultserver.Reset))
			m.wantDiags(m.Run(fakecli.With(Job2(), noWait)), messagePlanned, MessageUnknown)
			m.WantState("active")
			m.WantPosts(1, 1)
			m.wantDiags(m.Run(fakecli.With(Job2(), noWait)), messageUnconfirmed)
			m.WantPosts(1, 1)
		}},
		// Red when progress.classify takes a link for the end.
		{name: "M05_old_link_after_the_message", clock: true, script: longTurn, Test: func(m *Matrix) {
			m.created(Job1())
			link := m.cli.Get("pr_link")
			old := shows(attrs{"prLink": link})
			m.Script(faultserver.Message, faultserver.Effect(old))
			m.plan(Job2())
			m.Script(faultserver.Get, shows(nil), old, old, old)
			start := time.Now()
			m.OK(m.apply(Job2()))
			if took := time.Since(start); took < 40*time.Second {
				m.Errorf("it took %s only", took)
			}
			m.WantState("completed")
			m.WantPosts(1, 1)
		}},
	}
	// Red without: 4xx as refused in classifyPost; red when a refused prompt is saved.
	for _, status := range []int{400, 404, 409, 410} {
		rows = append(rows, Row{name: fmt.Sprintf("M03_%d", status), clock: true, script: longTurn, Test: func(m *Matrix) {
			m.created(Job1())
			before := m.cli.State
			m.Script(faultserver.Message, faultserver.Answer(status, `{"error":"it is closed"}`))
			diags := m.Run(Job2())
			m.wantDiags(diags, messagePlanned, messageFailed)
			m.wantWords(diags, fmt.Sprintf("The service answered %d", status), `it says "it is closed"`,
				"the job and the state are as before", "To give the prompt to a new job instead, apply with -replace=ADDRESS")
			if diff := cmp.Diff(before.String(), m.cli.State.String()); diff != "" {
				m.Errorf("the state was changed:\n%s", diff)
			}
			m.WantState("completed")
			m.WantPosts(1, 1)
			if prompts := m.Sim.Jobs()[0].Prompts; len(prompts) != 1 {
				m.Errorf("the job has the prompts %q", prompts)
			}
			m.wantDiags(m.Run(Job2()), messagePlanned)
			m.WantState("completed")
			m.WantPosts(1, 2)
		}})
	}
	return rows
}
