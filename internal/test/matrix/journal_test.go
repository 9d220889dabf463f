// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// journalRows are hosts, runs and folders for which a journal is unlike an ordinary one.
func journalRows() []Row {
	var rows []Row
	row := func(name string, test func(m *Matrix)) {
		rows = append(rows, Row{name: name, clock: true, Test: test})
	}
	// Pulumi's bridge is such a host.
	row("H01_one_process_for_all_commands", func(m *Matrix) {
		m.nextRun()
		m.OK(m.note(m.cli.Run(m.ctx, Job1())))
		m.OK(m.note(m.cli.Run(m.ctx, Job2())))
		m.WantPosts(1, 1)
		m.cli.Forget()
		m.wantDiags(m.note(m.cli.Run(m.ctx, Job1())), anotherPrompt)
		m.WantPosts(1, 1)
	})
	// Red without: the time of the earlier run's message (the wait would last a minute more).
	rows = append(rows, Row{name: "X04_the_message_was_accepted_long_ago", clock: true, script: turns(simulator.Script{}), Test: func(m *Matrix) {
		m.nextRun()
		m.created(Job1())
		m.nextRun()
		before := *m.cli
		m.OK(m.Run(fakecli.With(Job2(), attrs{"wait": attrs{"enabled": false}})))
		*m.cli = before // its state was lost
		time.Sleep(time.Minute)
		m.nextRun()
		start := time.Now()
		m.wantDiags(m.Run(Job2()), messageFound)
		m.wantTook(start, 0, time.Second)
		m.wantEnd("completed", 1, 1)
	}})
	return rows
}
