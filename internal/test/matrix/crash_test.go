// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"cmp"
	"os"
	"path/filepath"
	"time"

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
	rows := []Row{
		// Red without: Settle in takeOver, and the loop in Send.
		{name: "X04_both_jobs_have_failed", clock: true, Test: func(m *Matrix) {
			m.nextRun()
			for range 2 {
				m.OK(m.Run(noWait()))
				m.Sim.SetStatus(m.id(), "failed")
				m.cli.Forget()
			}
			m.nextRun()
			m.starts(Job1(), takeOverPlanned)
			m.wantNoOrphans()
		}},
		// A wrong key has the same effect. Red without: Unreadable for a 404 in takeOver; Listed in it.
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
		// Red without: the triggers in announce.
		{name: "X04_the_job_may_be_for_other_triggers", clock: true, Test: func(m *Matrix) {
			m.started(Job1())
			m.OK(m.plan(fakecli.With(Job1(), attrs{"triggers": unknown{}})))
		}},
		// Red without: the record before the POST; takeOver of messages.
		{name: "X04_no_answer_to_the_message_had_come", clock: true, Test: func(m *Matrix) {
			id := m.created(Job1())
			m.nextRun()
			m.unanswered(faultserver.Message, Job2(), messagePlanned, MessageUnknown)
			m.wantDiags(m.Run(Job2()), outcomePlanned, MessageUnknown)
			m.wantWords("job "+id, "and nothing shows whether it arrived.")
			m.wantDiags(m.Run(Job2()), messageUnconfirmed)
			m.WantPosts(1, 1)
			m.wantNoOrphans()
		}},
		{name: "X04_the_message_was_taken", clock: true, Test: func(m *Matrix) {
			id := m.sent()
			found := func() {
				m.wantDiags(m.Run(Job2()), messagePlannedOver, messageFound)
				m.wantWords("An earlier run sent this prompt to job "+id, "job "+id+" in project proj_1, which accepted it", "It was not sent again.")
				m.wantEnd("completed", 1, 1)
			}
			m.undone(found) // killed again, just after it was found
			m.nextRun()
			found()
			m.nextRun()
			m.OK(m.Run(Job2()))
			m.wantNoOrphans()
		}},
		// Red without: takeOver looking at the status of a create only.
		{name: "X04_the_job_with_the_message_has_failed", clock: true, Test: func(m *Matrix) {
			id := m.sent()
			m.wantDiags(m.plan(Job2()), messagePlannedOver)
			m.Sim.SetStatus(id, "failed") // after the plan: a dead job is replaced otherwise
			m.wantDiags(m.apply(Job2()), messageFound, "ERROR: Agent job failed")
			m.wantEnd("failed", 1, 1)
		}},
		// Red without: the limit of ReadJob; Unreadable.
		{name: "X04_the_message_cannot_be_looked_up", clock: true, Test: func(m *Matrix) {
			id := m.sent()
			m.wantDiags(m.plan(Job2()), messagePlannedOver)
			m.Always(faultserver.Get, faultserver.Answer(503, ""))
			begin := time.Now()
			m.wantDiags(m.apply(Job2()), unreadable)
			m.wantWords("this prompt to job "+id+" in project proj_1, which accepted it", "The prompt was not sent again", "503 Service Unavailable", applyAgain)
			m.wantTook(begin, time.Minute, time.Minute+time.Second)
			m.Always(faultserver.Get, nil)
			m.nextRun()
			m.wantDiags(m.Run(Job2()), messagePlannedOver, messageFound)
			m.wantEnd("completed", 1, 1)
		}},
	}
	// Red without: KeepFailed in takeOver.
	for name, status := range map[string]string{"X04_the_job_is_archived_and_taken_over": "archived", "X04_the_job_has_failed_and_is_taken_over": "failed"} {
		rows = append(rows, Row{name: name, clock: true, Test: func(m *Matrix) {
			m.Sim.SetStatus(m.started(noWait()), status)
			m.wantDiags(m.Run(fakecli.With(Job1(), attrs{"wait": attrs{"on_failure": "warn"}})), takeOverPlanned, tookOver, "WARNING: Agent job "+status)
			m.wantEnd(status, 1, 0)
		}})
	}
	return append(rows, scopeRows()...)
}

// scopeRows change what a journal is for between the two runs.
func scopeRows() (rows []Row) {
	type place struct{ selected, workspace, backend, baseURL string }
	write := func(m *Matrix, name, text string) {
		if err := os.WriteFile(filepath.Join(m.data, name), []byte(text), 0o600); err != nil {
			m.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		first, second place
		job           attrs // of the second run, laid over the first one's
		same          bool
	}{
		"X07_other_selected_workspace":    {first: place{selected: "a"}, second: place{selected: "b"}},
		"X07_workspace_over_selected_one": {first: place{selected: "a"}, second: place{selected: "a", workspace: "b"}},
		"X07_default_workspace":           {second: place{workspace: "default"}, same: true},
		"X07_other_backend":               {first: place{backend: `"local","config":{"path":"a"}`}, second: place{backend: `"local","config":{"path":"b"}`}},
		"X07_other_key_in_S3":             {first: place{backend: `"s3","config":{"bucket":"b","key":"a"}`}, second: place{backend: `"s3","config":{"bucket":"b","key":"b"}`}},
		"X07_other_token":                 {first: place{backend: `"http","config":{"address":"https://u:1@h/s?t=1","password":"1"},"hash":1`}, second: place{backend: `"http","config":{"address":"https://u:2@h/s","password":"2"},"hash":2`}, same: true},
		"X07_other_password_in_a_string":  {first: place{backend: `"pg","config":{"conn_str":"host=h password='1 2' dbname=d"}`}, second: place{backend: `"pg","config":{"conn_str":"host=h password=3 dbname=d"}`}, same: true},
		"X07_other_database":              {first: place{backend: `"pg","config":{"conn_str":"postgres://u:1@h/a"}`}, second: place{backend: `"pg","config":{"conn_str":"postgres://u:1@h/b"}`}},
		"X07_other_unknown_backend":       {first: place{backend: `"new","config":{"at":"a"}`}, second: place{backend: `"new","config":{"at":"b"}`}},
		"X07_other_base_url":              {second: place{baseURL: "http://127.0.0.1:2"}},
		"X07_other_project":               {job: attrs{"project_id": "proj_2"}},
		"X07_other_prompt":                {job: attrs{"prompt": "Add a tutorial"}},
		"X07_other_triggers":              {job: attrs{"triggers": attrs{"a": "1"}}},
		"X07_other_timeouts":              {job: attrs{"timeouts": attrs{"create": "5m"}}, same: true},
	} {
		// Red without: each part of journalScope and createKey.
		rows = append(rows, Row{name: name, clock: true, Test: func(m *Matrix) {
			goTo := func(p place) {
				write(m, "environment", p.selected)
				write(m, "terraform.tfstate", `{"version":3,"backend":{"type":`+cmp.Or(p.backend, `"local","config":{}`)+`}}`)
				m.Setenv("TF_WORKSPACE", p.workspace)
				m.config["base_url"] = cmp.Or(p.baseURL, m.URL)
			}
			goTo(c.first)
			id := m.started(Job1())
			goTo(c.second)
			m.OK(m.connect())
			job := fakecli.With(Job1(), c.job)
			if c.same {
				m.takesOver(job, id)
				return
			}
			m.starts(job)
			m.wantEntries(2) // that of the killed run stays
		}})
	}
	return rows
}
