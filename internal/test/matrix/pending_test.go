// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// unansweredCreates lets a run send n creates, to which the service responds once
// the returned channel is closed, and starts the next run.
func (m *Matrix) unansweredCreates(n int) (release chan struct{}) {
	m.Helper()
	release = make(chan struct{})
	m.Always(faultserver.Create, func(x *faultserver.Exchange) { <-release; faultserver.Healthy(x) })
	m.nextRun()
	for range n {
		c := m.other()
		m.OK(c.Plan(m.ctx, noWait()))
		go c.Apply(m.ctx, noWait())
	}
	time.Sleep(time.Second)
	m.nextRun()
	return release
}

// pendingRows are requests under way when the next run plans.
func pendingRows() []Row {
	const waits = 3 * time.Second
	rows := []Row{
		// Red without: the wait for a response in await.
		{name: "X16_three_equal_keys_answered_while_the_next_run_waits", clock: true, Test: func(m *Matrix) {
			release := m.unansweredCreates(3)
			all := []*fakecli.CLI{m.other(), m.other(), m.other()}
			diags := make([][]*tfprotov6.Diagnostic, len(all))
			var applies sync.WaitGroup
			for i, c := range all {
				m.wantDiags(c.Plan(m.ctx, noWait()), outcomePlanned)
				applies.Go(func() { diags[i] = c.Apply(m.ctx, noWait()) })
			}
			time.Sleep(waits)
			m.WantPosts(3, 0)
			close(release)
			applies.Wait()
			ids := map[any]bool{}
			for i, c := range all {
				m.wantDiags(diags[i], tookOver)
				ids[c.Get("id")] = true
			}
			if len(ids) != 3 {
				m.Errorf("jobs %v, want three", ids)
			}
			m.WantPosts(3, 0)
		}},
		// Red without: notTakenOver (the text said that nothing was started, and that applying again starts it).
		{name: "X16_a_stop_while_the_next_run_waits", clock: true, Test: func(m *Matrix) {
			release := m.unansweredCreates(1)
			time.AfterFunc(waits, m.cli.Stop)
			m.wantDiags(m.Run(noWait()), outcomePlanned, createFailed)
			m.wantWords("The prompt was not sent to project proj_1.", nothingSentBecause, "The run was interrupted.", "Apply again: that takes over what an earlier run sent, or else sends the prompt.")
			m.wantNoWords("no job was started")
			m.WantState("")
			close(release)
			time.Sleep(time.Second)
			m.nextRun()
			m.takesOver(noWait(), m.Sim.Jobs()[0].ID)
			m.WantPosts(1, 0)
		}},
	}
	return append(rows, unknownOutcomeRows()...)
}

// stopping is a service's play during which the user presses Ctrl-C.
func (m *Matrix) stopping(play faultserver.Play) faultserver.Play {
	return func(x *faultserver.Exchange) {
		m.cli.Stop()
		play(x)
	}
}

// pausedRow needs no journal. Red without: the context in the limiter's wait.
var pausedRow = Row{name: "X03_interrupt_in_a_pause", clock: true, Test: func(m *Matrix) {
	m.Script(faultserver.Create, faultserver.Answer(429, "", "Retry-After: 600"))
	time.AfterFunc(time.Minute, m.cli.Stop)
	begin := time.Now()
	m.wantDiags(m.Run(Job1()), createFailed)
	m.wantWords("rate limit refused")
	m.wantTook(begin, time.Minute, time.Minute)
	m.wantEnd("", 1, 0)
	m.OK(m.connect())
	m.OK(m.Run(Job1()))
	m.WantPosts(2, 0)
}}

// unknownOutcomeRows are POSTs whose outcome the run does not learn.
func unknownOutcomeRows() []Row {
	rows := []Row{pausedRow}
	row := func(name string, test func(m *Matrix)) {
		rows = append(rows, Row{name: name, clock: true, Test: test})
	}
	for _, kind := range []faultserver.Kind{faultserver.Create, faultserver.Message} {
		job, failed, reported := Job1(), []string{createFailed}, outcomeUnknown
		if kind == faultserver.Message {
			job, failed, reported = Job2(), []string{messagePlanned, MessageUnknown}, MessageUnknown
		}
		prepare := func(m *Matrix) {
			m.named()
			if kind == faultserver.Message {
				m.created(Job1())
			}
			m.nextRun()
		}
		// Red without: remove in End.
		row("X08_unknown_outcome_of_a_"+string(kind)+"_that_was_reported", func(m *Matrix) {
			prepare(m)
			m.Script(kind, faultserver.EOF)
			m.wantDiags(m.Run(job), failed...)
			m.wantEntries(0)
		})
		// Red without: stopping in End.
		row("X08_unknown_outcome_of_a_"+string(kind)+"_after_a_stop", func(m *Matrix) {
			prepare(m)
			m.Script(kind, m.stopping(faultserver.EOF))
			m.undone(func() { m.wantDiags(m.Run(job), failed...) }) // the second Ctrl-C
			m.wantEntries(1)
			posts := m.posts()
			m.cleanly()
			m.wantDiags(append(m.plan(job), m.apply(job)...), outcomePlanned, reported)
			m.wantPosts(posts)
			m.wantEntries(0)
		})
	}
	// Red without: the mark of the entry in the state of an unknown outcome.
	row("X08_unknown_outcome_of_a_message_that_the_state_shows", func(m *Matrix) {
		m.named()
		m.created(Job1())
		m.nextRun()
		m.Script(faultserver.Message, m.stopping(faultserver.EOF))
		m.wantDiags(m.Run(Job2()), messagePlanned, MessageUnknown)
		m.wantEntries(1)
		m.cleanly()
		m.wantDiags(m.Run(Job2()), messageUnconfirmed)
		m.wantEntries(0)
		m.WantPosts(1, 1)
	})
	return rows
}
