// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"bytes"
	"os"
	"path/filepath"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// noWait is a job that its create does not wait for.
func noWait() attrs { return fakecli.With(Job1(), attrs{"wait": attrs{"enabled": false}}) }

const messagePlannedOver = "WARNING: Message of an earlier run will be taken over"

// crashRows are what the run after a killed one makes of its journal. What is
// killed here is the journal alone; package chaos kills the real thing.
func crashRows() []Row {
	const cannotLook = "the job cannot be read now. The prompt was not sent again."
	rows := []Row{
		// Red without: takeOver; the second time, if the claim removed the entry.
		{name: "X04_the_job_has_ended", clock: true, Test: func(m *Matrix) {
			id := m.started(Job1())
			m.takesOver(Job1(), id)
			m.cli.Forget()
			m.kill() // again, just after it took the job over
			m.takesOver(Job1(), id)
			m.wantNoOrphans()
		}},
		{name: "X04_the_job_is_active", clock: true, Test: func(m *Matrix) {
			id := m.started(noWait())
			m.takesOver(Job1(), id)
			m.WantState("completed")
			m.wantNoOrphans()
		}},
		// Red without: Drop in takeOver, in both halves.
		{name: "X04_the_job_has_failed", clock: true, Test: func(m *Matrix) {
			id := m.started(noWait())
			m.Sim.SetStatus(id, "failed")
			m.starts(Job1(), id, takeOverPlanned)
			second := m.id()
			m.cli.Forget()
			m.kill()
			m.takesOver(Job1(), second)
		}},
		// Red without: the loop in takeOver.
		{name: "X04_the_first_of_two_jobs_has_failed", clock: true, Test: func(m *Matrix) {
			failed := m.forgotten(noWait())
			m.Sim.SetStatus(failed, "failed")
			m.OK(m.Run(noWait()))
			id := m.id()
			m.cli.Forget()
			m.kill(func(lines [][]byte) [][]byte {
				if bytes.Contains(bytes.Join(lines, nil), []byte(failed)) {
					return m.sentAgo(time.Second)(lines) // both may have been sent in the same millisecond
				}
				return lines
			})
			m.wantDiags(m.Run(Job1()), takeOverPlanned, tookOver)
			m.wantWords("An earlier run started job " + id)
			m.WantPosts(2, 0)
			m.wantNoOrphans()
		}},
		// Red without: NewJobGrace, and Keep; Drop of what is gone.
		{name: "X04_the_job_is_unknown", clock: true, Test: func(m *Matrix) {
			id := m.started(noWait())
			m.Sim.Forget(id)
			for _, age := range []time.Duration{0, 50 * time.Second} {
				m.kill(m.sentAgo(age))
				m.wantDiags(m.Run(Job1()), takeOverPlanned, createFailed)
				m.wantWords(id, cannotLook, "404 Not Found", "Apply again once the service responds.")
				m.wantEnd("", 1, 0)
			}
			m.kill(m.sentAgo(11 * time.Second))
			m.starts(Job1(), id, takeOverPlanned)
			m.wantNoOrphans()
		}},
		// Red without: the limit of the look-up, and Keep: settled would remove the entry.
		{name: "X04_the_job_cannot_be_looked_up", clock: true, Test: func(m *Matrix) {
			id := m.started(Job1())
			m.Always(faultserver.Get, faultserver.Answer(503, ""))
			begin := time.Now()
			m.wantDiags(m.Run(Job1()), takeOverPlanned, createFailed)
			m.wantWords(id, cannotLook, "503 Service Unavailable", "Apply again once the service responds.")
			m.wantTook(begin, time.Minute, time.Minute)
			m.WantState("")
			m.Always(faultserver.Get, nil)
			m.cleanly()
			m.takesOver(Job1(), id)
			m.wantNoOrphans()
		}},
		// Red without: the record before the POST; a second report without the removal in await.
		{name: "X04_no_answer_had_come", clock: true, Test: func(m *Matrix) {
			id := m.started(Job1(), unanswered)
			m.wantDiags(m.Run(Job1()), outcomePlanned, outcomeUnknown)
			m.wantWords("Apply waits for it, and sends the prompt only if that request had no effect.", "to project proj_1 at ", "did not record the outcome",
				"It was not sent again. This is reported once.", "terraform (or tofu) import ADDRESS proj_1/JOB_ID")
			m.wantEnd("", 1, 0)
			m.kill()
			m.starts(Job1(), id)
			m.wantNoOrphans()
		}},
		// Red without: the same for messages.
		{name: "X04_the_message_was_taken", clock: true, Test: func(m *Matrix) {
			id := m.sent()
			for range 2 { // killed again, just after it was found
				m.kill()
				before := *m.cli
				m.wantDiags(m.Run(Job2()), messagePlannedOver, messageFound)
				m.wantWords("An earlier run sent this prompt to job "+id, "job "+id+" in project proj_1, which accepted it", "It was not sent again.")
				m.wantEnd("completed", 1, 1)
				*m.cli = before
			}
			m.kill()
			m.wantDiags(m.Run(Job2()), messagePlannedOver, messageFound)
			m.kill()
			m.OK(m.Run(Job2()))
			m.wantNoOrphans()
		}},
		// Red without: the limit of the look-up, and Keep.
		{name: "X04_the_message_cannot_be_looked_up", clock: true, Test: func(m *Matrix) {
			id := m.sent()
			m.wantDiags(m.plan(Job2()), messagePlannedOver)
			m.Always(faultserver.Get, faultserver.Answer(503, ""))
			begin := time.Now()
			m.wantDiags(m.apply(Job2()), messageFailed)
			m.wantWords("the new prompt to job "+id+" in project proj_1, which accepted it", "It was not sent again", "503 Service Unavailable", "Apply again once the service responds.")
			m.wantTook(begin, time.Minute, time.Minute)
			m.WantPosts(1, 1)
			m.Always(faultserver.Get, nil)
			m.cleanly()
			m.wantDiags(m.Run(Job2()), messagePlannedOver, messageFound)
			m.wantEnd("completed", 1, 1)
			m.wantNoOrphans()
		}},
		{name: "X04_no_answer_to_the_message_had_come", clock: true, Test: func(m *Matrix) {
			id := m.sent(unanswered)
			m.wantDiags(m.Run(Job2()), outcomePlanned, MessageUnknown)
			m.wantWords("job "+id, "An earlier run sent it and did not record the outcome.")
			m.WantPosts(1, 1)
			m.wantDiags(m.Run(Job2()), messageUnconfirmed)
			m.WantPosts(1, 1)
			m.wantNoOrphans()
		}},
	}
	for status, end := range map[string]string{"archived": "WARNING: Agent job archived", "failed": "ERROR: Agent job failed"} {
		// Red without: sendOrTakeOver looking at no status.
		rows = append(rows, Row{name: "X04_the_job_with_the_message_is_" + status, clock: true, Test: func(m *Matrix) {
			id := m.sent()
			m.wantDiags(m.plan(Job2()), messagePlannedOver)
			m.Sim.SetStatus(id, status) // after the plan: a dead job is replaced otherwise
			m.wantDiags(m.apply(Job2()), messageFound, end)
			m.wantEnd(status, 1, 1)
		}})
	}
	for status, end := range map[string]string{"archived": "WARNING: Agent job archived", "failed": "WARNING: Agent job failed"} {
		// Red without: onFailure in takeOver.
		rows = append(rows, Row{name: "X04_the_job_is_taken_over_although_it_is_" + status, clock: true, Test: func(m *Matrix) {
			m.Sim.SetStatus(m.started(noWait()), status)
			job := Job1()
			if status == "failed" {
				job["wait"] = attrs{"on_failure": "warn"}
			}
			m.wantDiags(m.Run(job), takeOverPlanned, tookOver, end)
			m.wantEnd(status, 1, 0)
		}})
	}
	// Red without: pruneJournal in Read, ModifyPlan and Delete.
	for name, step := range map[string]func(m *Matrix){
		"refresh": func(m *Matrix) { m.refresh() }, "plan": func(m *Matrix) { m.plan(Job1()) }, "destroy": func(m *Matrix) { m.OK(m.cli.Destroy(m.ctx)) },
	} {
		rows = append(rows, Row{name: "X04_the_state_holds_the_job_at_" + name, clock: true, Test: func(m *Matrix) {
			m.nextRun()
			m.OK(m.Run(Job1()))
			m.kill()
			step(m)
			m.wantEntries(0)
		}})
	}
	return append(rows, scopeRows()...)
}

// scopeRows change what a journal is for between the two runs.
func scopeRows() []Row {
	write := func(name, text string) func(m *Matrix) {
		return func(m *Matrix) {
			if err := os.WriteFile(filepath.Join(m.data, name), []byte(text), 0o600); err != nil {
				m.Fatal(err)
			}
		}
	}
	backend := func(path string) func(m *Matrix) {
		return write("terraform.tfstate", `{"version":3,"backend":{"type":"local","config":{"path":"`+path+`"}}}`)
	}
	workspace := func(name string) func(m *Matrix) {
		return func(m *Matrix) { m.Setenv("TF_WORKSPACE", name) }
	}
	configure := func(name string, value any) func(m *Matrix) {
		return func(m *Matrix) { m.config[name] = value }
	}
	var rows []Row
	for name, c := range map[string]struct {
		first, second func(m *Matrix)
		job           attrs // of the second run, laid over the first one's
		same          bool
	}{
		"other_workspace":               {first: workspace("a"), second: workspace("b")},
		"other_selected_workspace":      {first: write("environment", "a"), second: write("environment", "b")},
		"workspace_over_selected_one":   {first: write("environment", "a"), second: workspace("b")},
		"same_workspace_by_other_means": {first: write("environment", "a"), second: workspace("a"), same: true},
		"default_workspace_selected":    {second: write("environment", "default"), same: true},
		"default_workspace_named":       {second: workspace("default"), same: true},
		"other_backend":                 {first: backend("a"), second: backend("b")},
		"same_backend":                  {first: backend("a"), second: backend("a"), same: true},
		"other_base_url":                {second: configure("base_url", "http://127.0.0.1:2")},
		"other_default_project":         {second: configure("project_id", "proj_2")},
		"other_project":                 {job: attrs{"project_id": "proj_2"}},
		"other_prompt":                  {job: attrs{"prompt": "Add a tutorial"}},
		"other_triggers":                {job: attrs{"triggers": attrs{"a": "1"}}},
		"other_timeouts":                {job: attrs{"timeouts": attrs{"create": "5m"}}, same: true},
	} {
		// Red without: each part of journalScope and createKey.
		rows = append(rows, Row{name: "X07_" + name, clock: true, Test: func(m *Matrix) {
			if c.first != nil {
				c.first(m)
			}
			id := m.started(Job1())
			if c.second != nil {
				c.second(m)
				m.OK(m.connect())
			}
			job := fakecli.With(Job1(), c.job)
			if c.same {
				m.takesOver(job, id)
				return
			}
			m.starts(job, id)
			m.process.Close(m.ctx)
			m.wantEntries(1) // that of the killed run
		}})
	}
	return rows
}
