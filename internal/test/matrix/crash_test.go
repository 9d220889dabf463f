// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

const (
	adopted      = "WARNING: Agent job of an earlier run adopted"
	messageFound = "WARNING: Message of an earlier run found"
)

// journals lists the files of the crash journal.
func (m *Matrix) journals() []string {
	m.Helper()
	files, err := filepath.Glob(filepath.Join(m.data, "agent", "*.jsonl"))
	if err != nil {
		m.Fatal(err)
	}
	return files
}

// journaled starts a provider that keeps a crash journal.
func (m *Matrix) journaled() {
	m.Helper()
	m.crashes = journal.Open(filepath.Join(m.data, "agent"), func(err error) { m.Error(err) })
	m.OK(m.connect())
}

// crash leaves the first entries that the provider has noted as a killed one
// would, and starts the next one.
func (m *Matrix) crash(entries int) {
	m.Helper()
	files := m.journals()
	if len(files) != 1 {
		m.Fatalf("journals: %q, want one", files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		m.Fatal(err)
	}
	m.crashes.Close()
	lines := strings.SplitAfter(string(text), "\n")
	if len(lines) <= entries {
		m.Fatalf("%d entries: %q", len(lines)-1, text)
	}
	dead := filepath.Join(m.data, "agent", "dead.jsonl")
	if err := os.MkdirAll(filepath.Dir(dead), 0o700); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(dead, []byte(strings.Join(lines[:entries], "")), 0o600); err != nil {
		m.Fatal(err)
	}
	m.journaled()
}

// settled ends the provider and asserts that nothing is left to remember.
func (m *Matrix) settled() {
	m.Helper()
	m.crashes.Close()
	if files := m.journals(); len(files) > 0 {
		m.Errorf("journals: %q", files)
	}
}

// started is a job whose run was killed after so many of its two entries: the
// POST on its way, and the answer.
func (m *Matrix) started(job attrs, entries int) (id string) {
	m.Helper()
	m.journaled()
	m.OK(m.Run(job))
	id = m.core.Get("id").(string)
	m.forget()
	m.crash(entries)
	return id
}

// adopts runs the job and asserts that the one of the killed run is taken over.
func (m *Matrix) adopts(job attrs, id string) {
	m.Helper()
	posts := m.Count(faultserver.Create)
	diags := m.Run(job)
	m.wantDiags(diags, adopted)
	m.wantWords(diags, "job "+id, "in project proj_1", "nothing was sent")
	m.WantState("completed")
	m.WantPosts(posts, 0)
	if got := m.core.Get("id"); got != id {
		m.Errorf("id %v, want %s", got, id)
	}
}

// starts runs the job and asserts that a new one is started without a word.
func (m *Matrix) starts(job attrs, id string) {
	m.Helper()
	posts := m.Count(faultserver.Create)
	m.OK(m.Run(job))
	m.WantState("completed")
	m.WantPosts(posts+1, 0)
	if got := m.core.Get("id"); got == id {
		m.Errorf("id %v is that of the killed run", got)
	}
	m.settled()
}

// crashRows are what the run after a killed one makes of its journal. What is
// killed here is the journal alone; package chaos kills the real thing.
func crashRows() []Row {
	noWait := fakecli.With(Job1(), attrs{"wait": attrs{"enabled": false}})
	const cannotLook = "the job cannot be looked up now. Nothing was sent."
	rows := []Row{
		// Red without: takeOver; at the end, without Settle, or Answered before it.
		{name: "X04_the_job_has_ended", clock: true, Test: func(m *Matrix) {
			id := m.started(Job1(), 2)
			m.adopts(Job1(), id)
			m.forget()
			m.crash(1) // killed again, just after it took the job over
			m.adopts(Job1(), id)
			m.settled()
		}},
		{name: "X04_the_job_is_active", clock: true, Test: func(m *Matrix) {
			m.adopts(Job1(), m.started(noWait, 2))
			m.settled()
		}},
		// Red without: the loop in takeOver.
		{name: "X04_the_first_of_two_jobs_has_failed", clock: true, Test: func(m *Matrix) {
			m.journaled()
			var ids []string
			for range 2 {
				m.OK(m.Run(noWait))
				ids = append(ids, m.core.Get("id").(string))
				m.forget()
				time.Sleep(time.Second) // the older is looked at first
			}
			m.Sim.SetStatus(ids[0], "failed")
			m.crash(4)
			m.adopts(Job1(), ids[1])
			m.settled()
		}},
		// Red without: NewJobGrace, and Return.
		{name: "X04_the_job_is_unknown", clock: true, Test: func(m *Matrix) {
			id := m.started(noWait, 2)
			m.Sim.Forget(id)
			for _, pause := range []time.Duration{0, 59 * time.Second} {
				time.Sleep(pause)
				diags := m.Run(Job1())
				m.wantDiags(diags, createFailed)
				m.wantWords(diags, id, cannotLook, "404 Not Found", "Apply again once the service answers.")
				m.wantNoState()
			}
			time.Sleep(2 * time.Second)
			m.starts(Job1(), id)
		}},
		// Red without: the limit of the look-up, and Return.
		{name: "X04_the_job_cannot_be_looked_up", clock: true, Test: func(m *Matrix) {
			id := m.started(Job1(), 2)
			m.Always(faultserver.Get, faultserver.Answer(503, ""))
			begin := time.Now()
			diags := m.Run(Job1())
			m.wantDiags(diags, createFailed)
			m.wantWords(diags, id, cannotLook, "503 Service Unavailable", "Apply again once the service answers.")
			if took := time.Since(begin); took != time.Minute {
				m.Errorf("it took %s", took)
			}
			m.wantNoState()
			m.Always(faultserver.Get, nil)
			m.adopts(Job1(), id)
			m.settled()
		}},
		// Red without: the intent before the POST.
		{name: "X04_no_answer_had_come", clock: true, Test: func(m *Matrix) {
			at := time.Now().UTC().Format(time.RFC3339)
			id := m.started(Job1(), 1)
			diags := m.Run(Job1())
			m.wantDiags(diags, "ERROR: Outcome of an earlier create unknown")
			m.wantWords(diags, "to project proj_1 at "+at+",", "Nothing was sent now. This is said once.", "terraform (or tofu) import ADDRESS proj_1/JOB_ID")
			m.wantNoState()
			m.WantPosts(1, 0)
			m.starts(Job1(), id)
		}},
		// Red without: the same for messages.
		{name: "X04_the_message_was_taken", clock: true, Test: func(m *Matrix) {
			id := m.sent(2)
			for entries := 1; entries >= 0; entries-- { // killed again, just after it was found
				before := *m.core
				diags := m.Run(Job2())
				m.wantDiags(diags, messagePlanned, messageFound)
				m.wantWords(diags, "job "+id, "Nothing was sent now.")
				m.WantState("completed")
				m.WantPosts(1, 1)
				if entries > 0 {
					*m.core = before
					m.crash(entries)
				}
			}
			m.OK(m.Run(Job2()))
			m.settled()
		}},
		// Red without: the limit of the look-up, and Return.
		{name: "X04_the_message_cannot_be_looked_up", clock: true, Test: func(m *Matrix) {
			id := m.sent(2)
			m.wantDiags(m.plan(Job2()), messagePlanned)
			m.Always(faultserver.Get, faultserver.Answer(503, ""))
			begin := time.Now()
			diags := m.apply(Job2())
			m.wantDiags(diags, messageFailed)
			m.wantWords(diags, "the new prompt to job "+id+", which took it", "Nothing was sent now", "503 Service Unavailable", "Apply again once the service answers.")
			if took := time.Since(begin); took != time.Minute {
				m.Errorf("it took %s", took)
			}
			m.WantPosts(1, 1)
			m.Always(faultserver.Get, nil)
			m.wantDiags(m.Run(Job2()), messagePlanned, messageFound)
			m.WantState("completed")
			m.WantPosts(1, 1)
			m.settled()
		}},
		{name: "X04_no_answer_to_the_message_had_come", clock: true, Test: func(m *Matrix) {
			id := m.sent(1)
			diags := m.Run(Job2())
			m.wantDiags(diags, messagePlanned, MessageUnknown)
			m.wantWords(diags, "job "+id, "A run that was ended by force had sent it, and no answer had come.")
			m.WantPosts(1, 1)
			m.wantDiags(m.Run(Job2()), messageUnconfirmed)
			m.WantPosts(1, 1)
			m.settled()
		}},
	}
	for _, status := range []string{"failed", "archived"} {
		// Red without: the statuses in takeOver.
		rows = append(rows, Row{name: "X04_the_job_is_" + status, clock: true, Test: func(m *Matrix) {
			id := m.started(noWait, 2)
			m.Sim.SetStatus(id, status)
			m.starts(Job1(), id)
		}})
	}
	// Red without: seen in Read, ModifyPlan and Delete.
	for name, step := range map[string]func(m *Matrix){
		"refresh": func(m *Matrix) { m.refresh() }, "plan": func(m *Matrix) { m.plan(Job1()) }, "destroy": func(m *Matrix) { m.OK(m.core.Destroy(m.ctx)) },
	} {
		rows = append(rows, Row{name: "X04_the_state_holds_the_job_at_" + name, clock: true, Test: func(m *Matrix) {
			m.journaled()
			m.OK(m.Run(Job1()))
			m.crash(2)
			step(m)
			m.settled()
		}})
	}
	return append(rows, scopeRows()...)
}

// sent is a job whose message was sent by a run that was killed after so many
// of its two entries. The message has ended, and the state is the one from before.
func (m *Matrix) sent(entries int) (id string) {
	m.Helper()
	id = m.created(Job1())
	before := *m.core
	m.journaled()
	before.Server = m.core.Server
	m.wantDiags(m.Run(Job2()), messagePlanned)
	*m.core = before
	m.crash(entries)
	return id
}
