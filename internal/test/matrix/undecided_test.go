// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// forget lists ids in journal.forget for the next run.
func (m *Matrix) forget(ids ...string) {
	m.Helper()
	var list []tftypes.Value
	for _, id := range ids {
		list = append(list, tftypes.NewValue(tftypes.String, id))
	}
	settings, _ := m.config["journal"].(attrs)
	m.config["journal"] = fakecli.With(attrs{"forget": list}, settings)
}

// lostResponse is a run whose create had an effect, and whose response was lost.
func (m *Matrix) lostResponse(job attrs) (id string) {
	m.Helper()
	m.Script(faultserver.Create, faultserver.Effect(faultserver.Reset))
	m.wantDiags(m.Run(job), outcomeUnknown)
	m.wantWords("no response shows whether a job was started", "import ADDRESS proj_1/JOB_ID", "delete "+m.entry()+", or set journal { forget = [\""+m.entryID()+"\"] }")
	m.nextRun()
	jobs := m.Sim.Jobs()
	return jobs[len(jobs)-1].ID
}

// undecidedRows are creates whose outcome is unknown, and what a person may decide. Each
// way out is what the message says.
func undecidedRows() (rows []Row) {
	row := func(name string, test func(m *Matrix)) {
		rows = append(rows, Row{name: name, clock: true, Test: func(m *Matrix) {
			m.nextRun()
			test(m)
		}})
	}
	// A pipeline that applies again after each error. Red without: EarlierUnknown.
	row("X19_applied_again_three_times", func(m *Matrix) {
		m.lostResponse(Job1())
		for range 3 {
			m.wantDiags(m.Run(Job1()), outcomePlanned, outcomeUnknown)
			m.wantWords("Apply sends nothing and fails until you decide.", "to project proj_1 at ", "Each apply fails, without sending it again, until you decide.",
				"import ADDRESS proj_1/JOB_ID", "delete "+m.entry()+", or set journal { forget = [\""+m.entryID()+"\"] }", "AGENT_JOURNAL_FORGET="+m.entryID())
			m.wantEnd("", 1, 0)
			m.nextRun()
		}
		entry := m.entry()
		m.starts(fakecli.With(Job1(), attrs{"triggers": attrs{"a": "1"}}))
		m.cli.Forget()
		if err := os.Remove(entry); err != nil {
			m.Fatal(err)
		}
		m.starts(Job1())
	})
	// An import proves nothing about another request, so the entry must be given up too. Red without: isGivenUp in tidyJournal.
	row("X19_imported_and_forgotten", func(m *Matrix) {
		id := m.lostResponse(Job1())
		m.OK(m.imports(harness.Project + "/" + id))
		m.wantDiags(m.Run(Job1()), otherJob, stillRunning)
		m.wantWords("may have started a job, with unknown outcome,")
		m.forget(m.entryID())
		m.nextRun()
		m.OK(m.Run(Job1()))
		m.wantEntries(0)
		m.WantPosts(1, 0)
	})
	// Red without: isGivenUp in announce and takeOver.
	row("X19_forgotten_by_the_environment", func(m *Matrix) {
		m.lostResponse(Job1())
		m.Setenv("AGENT_JOURNAL_FORGET", strings.Repeat("a", 16)+", "+m.entryID())
		m.nextRun()
		m.OK(m.plan(Job1()))
		m.wantEntries(1) // a plan decides nothing
		m.OK(m.apply(Job1()))
		m.wantEnd("completed", 2, 0)
	})
	// Red without: the status in isGivenUp.
	row("X19_forgotten_before_the_deadline", func(m *Matrix) {
		release := make(chan struct{})
		m.Script(faultserver.Create, func(x *faultserver.Exchange) { <-release; faultserver.Healthy(x) })
		earlier := m.other()
		m.OK(m.note(earlier.Plan(m.ctx, noWait())))
		go earlier.Apply(m.ctx, noWait())
		time.Sleep(time.Second)
		m.forget(m.entryID())
		m.nextRun()
		time.AfterFunc(5*time.Second, func() { close(release) })
		start := time.Now()
		m.wantDiags(m.Run(noWait()), outcomePlanned, tookOver)
		m.wantTook(start, 5*time.Second, 6*time.Second)
		m.WantPosts(1, 0)
	})
	// Red without: the error of writePending in Sending.
	return append(rows, Row{name: "X05_the_default_folder_is_a_file", clock: true, Test: func(m *Matrix) {
		if err := os.WriteFile(filepath.Join(m.dir, ".agent-journal"), nil, 0o600); err != nil {
			m.Fatal(err)
		}
		m.nextRun()
		m.wantDiags(m.Run(Job1()), journalUnusable, createFailed)
		m.wantEnd("", 0, 0)
	}})
}
