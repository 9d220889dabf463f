// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"os"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// unrecorded is a run whose configuration has no journal.
func (m *Matrix) unrecorded(step func()) {
	m.Helper()
	journal := m.config["journal"]
	m.config["journal"] = attrs{"enabled": false}
	m.cleanly()
	step()
	m.config["journal"] = journal
}

// age makes the entries in a folder older.
func (m *Matrix) age(d time.Duration) {
	m.Helper()
	for _, path := range m.files("*.json") {
		info, err := os.Stat(path)
		if err == nil {
			err = os.Chtimes(path, time.Time{}, info.ModTime().Add(-d))
		}
		if err != nil {
			m.Fatal(err)
		}
	}
}

// journalRows are what a journal changes in ordinary use, and what it does not.
func journalRows() []Row {
	var rows []Row
	row := func(name string, test func(m *Matrix)) {
		rows = append(rows, Row{name: name, clock: true, Test: test})
	}
	inNamed := func(name string, test func(m *Matrix)) {
		row(name, func(m *Matrix) { m.named(); test(m) })
	}
	for store, use := range map[string]func(m *Matrix){"default_folder": func(*Matrix) {}, "named_folder": (*Matrix).named} {
		for refreshed, run := range map[string]func(m *Matrix, job attrs) []*tfprotov6.Diagnostic{
			"": (*Matrix).Run, "_without_refresh": func(m *Matrix, job attrs) []*tfprotov6.Diagnostic { return append(m.plan(job), m.apply(job)...) },
		} {
			// Red without: pruneJournal in Read, and in ModifyPlan; with the key of a message being the prompt alone.
			row("X12_prompts_A_B_A_B_in_"+store+refreshed, func(m *Matrix) {
				use(m)
				m.nextRun()
				m.OK(run(m, Job1()))
				for _, job := range []attrs{Job2(), Job1(), Job2()} {
					m.cleanly()
					m.wantDiags(run(m, job), messagePlanned)
				}
				m.WantPosts(1, 3)
				m.cleanly()
				m.OK(run(m, Job2()))
				m.wantEntries(0)
			})
		}
	}
	// Red without: Stopping in StopProvider. After Ctrl-C the CLI may not store what it received.
	row("X09_stopped_after_the_create", func(m *Matrix) {
		m.nextRun()
		m.created(Job1())
		m.cli.Stop()
		m.cleanly()
		m.wantEntries(1)
	})
	planDestroy := func(m *Matrix) { m.OK(m.note(m.cli.PlanDestroy(m.ctx))) }
	destroy := func(m *Matrix) { m.OK(m.note(m.cli.Destroy(m.ctx))) }
	noEntries := func(m *Matrix) { m.wantEntries(0) }
	for _, c := range []struct {
		name      string
		use       func(m *Matrix)
		steps     []func(m *Matrix) // after a create, before the state forgets the job
		takesOver bool
	}{
		// Red without: removeOwn in Close.
		{"X13_forgotten_by_the_state_in_default_folder", nil, []func(*Matrix){(*Matrix).cleanly}, false},
		{"X13_forgotten_by_the_state_in_named_folder_after_a_plan", (*Matrix).named,
			[]func(*Matrix){(*Matrix).cleanly, func(m *Matrix) { m.OK(m.plan(Job1())) }, (*Matrix).cleanly}, false},
		// Red without: announce (nothing would say so before the apply), and Named in Close.
		{"X13_forgotten_by_the_state_in_named_folder", (*Matrix).named, []func(*Matrix){(*Matrix).cleanly}, true},
		// Red without: pruneJournal before the return for a destroy in ModifyPlan.
		{"X11_planned_destroy_in_named_folder", (*Matrix).named,
			[]func(*Matrix){(*Matrix).cleanly, planDestroy, noEntries, destroy, (*Matrix).cleanly}, false},
		// Red without: Forget in Delete, which finds what this run has sent too.
		{"X11_destroyed_by_the_run_that_created_it", (*Matrix).named, []func(*Matrix){destroy, noEntries, (*Matrix).cleanly}, false},
	} {
		row(c.name, func(m *Matrix) {
			if c.use != nil {
				c.use(m)
			}
			m.nextRun()
			id := m.created(Job1())
			for _, step := range c.steps {
				step(m)
			}
			m.cli.Forget()
			if c.takesOver {
				m.takesOver(Job1(), id)
			} else {
				m.starts(Job1(), id)
			}
		})
	}
	// Red without: the job in messageKey.
	row("X07_the_same_message_to_another_job", func(m *Matrix) {
		second := m.other()
		m.OK(m.note(second.Run(m.ctx, Job1())))
		id := m.sent()
		second.Server = m.cli.Server
		m.wantDiags(m.note(second.Run(m.ctx, Job2())), messagePlanned)
		m.WantPosts(2, 2)
		m.wantDiags(m.Run(Job2()), messagePlannedOver, messageFound)
		m.WantPosts(2, 2)
		m.wantAttr("id", id)
	})
	// Red without: pruneJournal in Read (the plan would announce the failed job).
	failing := harness.Always(simulator.Script{Duration: 20 * time.Second, Status: "failed"})
	rows = append(rows, Row{name: "X11_tainted_in_named_folder", clock: true, script: failing, Test: func(m *Matrix) {
		m.named()
		for posts := range 2 {
			m.nextRun()
			m.wantDiags(m.Run(Job1()), "ERROR: Agent job failed")
			if !m.cli.Tainted {
				m.Error("not tainted")
			}
			m.WantPosts(posts+1, 0)
			m.wantEntries(1)
			m.process.Close(m.ctx)
		}
	}})
	// Red without: announced in Announce.
	row("X07_one_entry_and_three_equal_keys", func(m *Matrix) {
		id := m.started(Job1())
		all := []*fakecli.CLI{m.other(), m.other(), m.other()}
		var planned, applied []*tfprotov6.Diagnostic
		for _, c := range all {
			planned = append(planned, c.Plan(m.ctx, Job1())...)
		}
		m.wantDiags(planned, takeOverPlanned)
		ids := map[any]bool{}
		for _, c := range all {
			applied = append(applied, c.Apply(m.ctx, Job1())...)
			ids[c.Get("id")] = true
		}
		m.wantDiags(applied, tookOver)
		if len(ids) != 3 || !ids[id] {
			m.Errorf("jobs %v, want %s and two new ones", ids, id)
		}
		m.WantPosts(3, 0)
	})
	// Red without: announce for a replacement in the call with the prior state.
	inNamed("X09_a_replacement_is_announced", func(m *Matrix) {
		m.nextRun()
		m.created(Job1())
		m.cleanly()
		triggered := fakecli.With(Job1(), attrs{"triggers": attrs{"a": "1"}})
		var id string
		m.undone(func() { id = m.created(triggered) })
		m.cleanly()
		m.takesOver(triggered, id)
		m.WantPosts(2, 0)
	})
	// Red without: Imported in pruneJournal (it would be taken over, or be forgotten).
	inNamed("X09_an_import_that_is_lost", func(m *Matrix) {
		id := m.started(Job1())
		m.OK(m.imports(harness.Project + "/" + id))
		second := m.other()
		m.OK(m.note(second.Run(m.ctx, Job1())))
		if got := second.Get("id"); got == id {
			m.Errorf("%v belongs to two resources", got)
		}
		m.WantPosts(2, 0)
		m.wantEntries(2)
		*m.cli = *second // the state of the import was lost, that of the create was not
		m.cleanly()
		m.OK(m.refresh())
		m.cli.Forget()
		m.takesOver(Job1(), id)
	})
	// Red without: the mark being kept by Read and by an Update that only waits.
	inNamed("X09_the_entry_is_named_until_it_is_seen", func(m *Matrix) {
		m.created(Job1())
		m.nextRun()
		m.Script(faultserver.Get, faultserver.Healthy, faultserver.Answer(401, "")) // of the refresh, and of the wait
		m.wantDiags(m.Run(Job2()), messagePlanned, "ERROR: Agent job still running")
		m.unrecorded(func() {
			m.wantDiags(m.Run(Job2()), "WARNING: Unfinished agent job")
			m.WantState("completed")
		})
		m.wantEntries(1)
		m.cleanly()
		m.OK(m.Run(Job2()))
		m.wantEntries(0)
		m.WantPosts(1, 1)
	})
	// Red without: pruneJournal in Update.
	inNamed("X09_an_update_that_another_process_planned", func(m *Matrix) {
		m.nextRun()
		m.created(Job1())
		m.unrecorded(func() { m.wantDiags(m.plan(Job2()), messagePlanned) })
		m.cleanly()
		m.OK(m.apply(Job2()))
		m.WantPosts(1, 1)
		m.wantEntries(1) // that of the message
	})
	// Red without: errTakenOverByThisRun.
	row("X13_a_message_by_the_run_that_took_the_job_over", func(m *Matrix) {
		id := m.started(Job1())
		m.takesOver(Job1(), id)
		m.sameRun()
		m.wantDiags(m.Run(Job2()), messagePlanned, messageFailed)
		m.wantWords("The message was not sent to job "+id+" in project proj_1.", "a test must not send prompts to such a job", "journal = { enabled = false }", "apply again to send the message")
		m.wantNoWords("Apply again to send the message.\n") // it does not in a test
		m.WantPosts(1, 0)
		m.kill()
		m.wantDiags(m.Run(Job2()), messagePlanned)
		m.WantPosts(1, 1)
	})
	// Red without: maxAge in load.
	inNamed("X15_entries_of_a_month_in_a_folder", func(m *Matrix) {
		id := m.started(Job1())
		m.age(29 * 24 * time.Hour)
		m.takesOver(Job1(), id)
		m.cli.Forget()
		m.nextRun()
		m.age(2 * 24 * time.Hour)
		m.starts(Job1(), id)
		m.wantEntries(1)
	})
	return append(rows, pendingRows()...)
}

// update is a command of a host like Pulumi's bridge for Terraform providers, or
// Crossplane: it does not refresh, and drops the state of an update that returns
// an error.
func (m *Matrix) update(job attrs) []*tfprotov6.Diagnostic {
	m.Helper()
	before := *m.cli
	diags := m.plan(job)
	if !fakecli.Failed(diags) {
		diags = append(diags, m.apply(job)...)
	}
	if fakecli.Failed(diags) {
		m.cli.State, m.cli.Private, m.cli.Identity = before.State, before.Private, before.Identity
	}
	return diags
}

// hostRows are hosts that drop the state of an update that returns an error.
func hostRows() []Row {
	prepared := func(m *Matrix) {
		m.named()
		m.created(Job1())
		m.nextRun()
		m.Script(faultserver.Get, faultserver.Answer(401, "")) // ends the wait
		m.wantDiags(m.update(Job2()), messagePlanned, "ERROR: Agent job still running")
		m.wantPrompt(Job1())
	}
	return []Row{
		// Red without: the takeover of messages.
		{name: "X09_host_that_drops_the_state_of_a_failed_update", clock: true, Test: func(m *Matrix) {
			prepared(m)
			m.cleanly() // a new process of the host
			m.wantDiags(m.update(Job2()), messagePlannedOver, messageFound)
			m.wantEnd("completed", 1, 1)
		}},
		// All that one parent process does is one run, which never takes its own
		// messages over: there is no second update in a run of a CLI.
		{name: "X09_host_that_drops_the_state_and_stays", clock: true, Test: func(m *Matrix) {
			prepared(m)
			m.sameRun()
			m.wantDiags(m.update(Job2()), messagePlanned)
			m.WantPosts(1, 2)
		}},
	}
}
