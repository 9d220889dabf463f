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
)

// forget lists ids in journal.forget for the next run.
func (m *Matrix) forget(ids ...string) {
	m.Helper()
	var list []tftypes.Value
	for _, id := range ids {
		list = append(list, tftypes.NewValue(tftypes.String, id))
	}
	settings, _ := m.config["journal"].(attrs)
	m.config["journal"] = fakecli.With(fakecli.With(attrs{}, settings), attrs{"forget": list})
}

// lostResponse is a run whose create had an effect, and whose response was lost.
func (m *Matrix) lostResponse(job attrs) (id string) {
	m.Helper()
	m.Script(faultserver.Create, faultserver.Effect(faultserver.Reset))
	m.wantDiags(m.Run(job), outcomeUnknown)
	m.wantWords("no response shows whether a job was started", "import ADDRESS proj_1/JOB_ID", "give the request up: set journal { forget = [\""+m.record().Last.ID+"\"] }")
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
	// Red without: the message of a 2xx in newError, Whole in unknownOutcome.
	row("C05_an_error_with_200", func(m *Matrix) {
		m.Script(faultserver.Create, faultserver.Answer(200, `{"error":"out of service"}`))
		m.wantDiags(m.Run(Job1()), outcomeUnknown)
		m.wantWords(`200 OK, the response contains no usable job id, error message "out of service"`, "give the request up")
		m.wantEnd("", 1, 0)
	})
	// A pipeline that applies again after each error. Red without: Unknown in judgeCreate.
	row("X19_applied_again_three_times", func(m *Matrix) {
		m.lostResponse(Job1())
		id := m.record().Last.ID
		for range 3 {
			m.wantDiags(m.Run(Job1()), unknownPlanned, outcomeUnknown)
			m.wantWords("Apply sends nothing and fails until you decide.", "to project proj_1 at ", "Each apply fails, without sending it again, until you decide.",
				"import ADDRESS proj_1/JOB_ID", "give the request up: set journal { forget = [\""+id+"\"] }", "AGENT_JOURNAL_FORGET="+id)
			m.wantEnd("", 1, 0)
			m.nextRun()
		}
	})
	// Whoever reads the message may delete the record instead.
	row("X19_the_record_is_deleted", func(m *Matrix) {
		m.lostResponse(Job1())
		if err := os.RemoveAll(m.record().Where); err != nil {
			m.Fatal(err)
		}
		m.nextRun()
		m.starts(Job1())
	})
	// Red without: IsForgotten in judgeCreate; a new id for each request.
	row("X19_forgotten_by_the_environment", func(m *Matrix) {
		m.lostResponse(Job1())
		m.Setenv("AGENT_JOURNAL_FORGET", strings.Repeat("a", 16)+", "+m.record().Last.ID)
		m.nextRun()
		m.OK(m.plan(Job1()))
		m.wantRecord("", true, false) // a plan decides nothing
		m.OK(m.apply(Job1()))
		m.wantEnd("completed", 2, 0)
		m.cli.Forget() // the id is used up
		m.nextRun()
		m.adopts(Job1(), m.record().Job)
	})
	// The id of a request without an outcome decides nothing. Red without: Wait before IsForgotten in judge.
	row("X19_forgotten_before_the_deadline", func(m *Matrix) {
		release := m.inFlight(noWait())
		m.forget(m.record().Claim.ID)
		m.nextRun()
		time.AfterFunc(5*time.Second, release)
		start := time.Now()
		m.wantDiags(m.Run(noWait()), requestPlanned, adopted)
		m.wantTook(start, 5*time.Second, 6*time.Second)
		m.WantPosts(1, 0)
	})
	// The name of one resource does not block another. Red without: the name in key.
	row("X19_siblings", func(m *Matrix) {
		m.lostResponse(Job1())
		m.cli.Name = "b"
		m.starts(Job2())
	})
	// Red without: the error of write in Sending.
	return append(rows, Row{name: "X05_the_default_folder_is_a_file", clock: true, Test: func(m *Matrix) {
		if err := os.WriteFile(filepath.Join(m.dir, ".agent-journal"), nil, 0o600); err != nil {
			m.Fatal(err)
		}
		m.nextRun()
		m.wantDiags(m.Run(Job1()), journalUnusable, createFailed)
		m.wantEnd("", 0, 0)
	}}, Row{name: "X05_a_damaged_record", clock: true, Test: func(m *Matrix) {
		m.started(Job1())
		files, err := filepath.Glob(filepath.Join(m.record().Where, "*.json"))
		if err != nil || len(files) != 1 {
			m.Fatal(files, err)
		}
		if err := os.WriteFile(files[0], []byte(`{"format":1,`), 0o600); err != nil { // Red without: the errors of decode.
			m.Fatal(err)
		}
		m.wantDiags(m.Run(Job1()), journalUnusable, createFailed)
		m.wantWords(files[0][:len(files[0])-len("/1.json")], "is damaged")
		m.wantEnd("", 1, 0)
	}})
}
