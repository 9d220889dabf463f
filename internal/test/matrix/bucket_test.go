// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// inBucket asserts how many entries the bucket holds, and that they hold no
// prompt and no key.
func (m *Matrix) inBucket(f *fakeS3, n int) {
	m.Helper()
	entries := f.entries()
	if len(entries) != n {
		m.Errorf("entries: %q, want %d", entries, n)
	}
	for _, text := range entries {
		if strings.Contains(text, harness.CanaryKey) || strings.Contains(text, Job1()["prompt"].(string)) {
			m.Errorf("an entry holds a prompt or the key: %s", text)
		}
	}
}

// bucketRows are faults of the bucket that holds the journal.
func bucketRows() []Row {
	var rows []Row
	row := func(name string, test func(m *Matrix, f *fakeS3)) {
		rows = append(rows, Row{name: name, Test: func(m *Matrix) { test(m, m.bucket()) }})
	}
	for name, fault := range map[string]func(*http.Request) int{
		"responds_403": status("", 403), "responds_404": status("", 404),
		"responds_403_to_the_listing": func(r *http.Request) int {
			if r.URL.Query().Has("list-type") {
				return 403
			}
			return 0
		},
	} {
		// Red without: the error of ready in TakeOver.
		row("X14_before_the_POST_"+name, func(m *Matrix, f *fakeS3) {
			f.fail(fault)
			m.nextRun()
			diags := m.Run(Job1())
			m.wantDiags(diags, journalUnusable, createFailed)
			m.wantWords(diags, "The journal in s3://bucket/a/prefix/ could not be read", "Nothing was sent to project proj_1 now.", "Check journal.url")
			m.wantNoState()
			f.fail(nil)
			m.nextRun()
			m.OK(m.Run(Job1()))
			m.WantPosts(1, 0)

			f.fail(fault)
			m.nextRun()
			diags = append(m.plan(Job2()), m.apply(Job2())...)
			m.wantDiags(diags, journalUnusable, messagePlanned, messageFailed)
			m.wantWords(diags, "Nothing was sent to job "+m.cli.Get("id").(string)+" now.", "Check journal.url")
			m.WantPosts(1, 0)
		})
	}
	// Red without: the error of ready in TakeOver.
	rows = append(rows, Row{name: "X14_before_the_POST_unreachable", Test: func(m *Matrix) {
		f := m.bucket()
		f.Close()
		m.nextRun()
		diags := m.Run(Job1())
		m.wantDiags(diags, journalUnusable, createFailed)
		m.wantWords(diags, "connection refused", "Nothing was sent to project proj_1 now.")
		m.wantNoState()
		m.WantPosts(0, 0)
	}})
	// Red without: the error of Sending.
	row("X14_before_the_POST_responds_403_to_writes", func(m *Matrix, f *fakeS3) {
		f.fail(status(http.MethodPut, 403))
		m.nextRun()
		diags := m.Run(Job1())
		m.wantDiags(diags, createFailed)
		m.wantWords(diags, "Nothing was sent to project proj_1, so no job was started.", "could not be written", "Check journal.url", "Applying again starts the job.")
		if text := diags[0].Detail; strings.Contains(text, "HTTPS_PROXY") {
			m.Errorf("a hint at the service: %s", text)
		}
		m.wantNoState()
		m.WantPosts(0, 0)
		m.inBucket(f, 0)
	})
	// Red without: the cause of a cancelled call in Sending (the text blamed the network).
	row("X14_before_the_POST_stopped_while_it_is_recorded", func(m *Matrix, f *fakeS3) {
		m.nextRun()
		f.fail(func(r *http.Request) int {
			if r.Method == http.MethodPut {
				m.cli.Stop()
			}
			return 0
		})
		diags := m.Run(Job1())
		m.wantDiags(diags, createFailed)
		m.wantWords(diags, "Nothing was sent to project proj_1, so no job was started.", "The run was interrupted.")
		m.WantPosts(0, 0)
		m.inBucket(f, 0)
	})
	for name, recovers := range map[string]bool{"recovers_at_the_end": true, "does_not_recover": false} {
		// Red without: warnUnrecorded; the removal in retry; the mark of the entry in the state.
		row("X14_after_the_POST_and_it_"+name, func(m *Matrix, f *fakeS3) {
			m.nextRun()
			m.Script(faultserver.Create, func(x *faultserver.Exchange) {
				f.fail(status("", 403))
				faultserver.Healthy(x)
			})
			diags := m.Run(noWait())
			m.wantDiags(diags, journalUnwritten)
			m.wantWords(diags, "job "+m.cli.Get("id").(string)+" is in the state", "could not be written")
			m.WantState("active")
			if recovers {
				f.fail(nil)
			}
			m.process.Close(m.ctx)
			m.inBucket(f, map[bool]int{false: 1}[recovers])
			f.fail(nil)
			m.nextRun()
			m.OK(m.Run(noWait()))
			m.inBucket(f, 0)
			m.WantPosts(1, 0)
		})
	}
	// Red without: retry.
	row("X14_after_the_POST_and_it_recovers_before_the_end", func(m *Matrix, f *fakeS3) {
		m.nextRun()
		m.Script(faultserver.Create, func(x *faultserver.Exchange) {
			f.fail(status("", 403))
			faultserver.Healthy(x)
		})
		m.wantDiags(m.Run(noWait()), journalUnwritten)
		id := m.cli.Get("id").(string)
		f.fail(nil)
		for start := time.Now(); !strings.Contains(f.entries()[0], id); time.Sleep(10 * time.Millisecond) {
			if time.Since(start) > 10*time.Second {
				m.Fatal("the response was not recorded")
			}
		}
		m.forget()
		m.nextRun()
		m.takesOver(noWait(), id)
		m.WantPosts(1, 0)
	})
	// Red without: the pending entry, which stays when the response cannot be recorded.
	row("X14_after_the_POST_and_the_state_is_lost", func(m *Matrix, f *fakeS3) {
		m.config["request_timeout"] = "1s"
		m.nextRun()
		m.Script(faultserver.Create, func(x *faultserver.Exchange) {
			f.fail(status("", 403))
			m.stopping(faultserver.Healthy)(x)
		})
		m.wantDiags(m.Run(noWait()), journalUnwritten)
		m.process.Close(m.ctx)
		f.fail(nil)
		m.inBucket(f, 1)
		m.forget()
		m.nextRun()
		m.wantDiags(m.plan(noWait()), outcomePlanned) // an apply would wait for as long as a response could come
		m.WantPosts(1, 0)
	})
	// Red without: removal as an error of Seen; the Once of reportJournalError; Blocked.
	row("X14_entries_cannot_be_removed", func(m *Matrix, f *fakeS3) {
		m.nextRun()
		m.created(Job1())
		second := m.other()
		m.OK(m.note(second.Run(m.ctx, Job2())))
		f.fail(status(http.MethodDelete, 403))
		m.nextRun()
		second.Server = m.cli.Server
		m.wantDiags(append(m.Run(Job1()), m.note(second.Run(m.ctx, Job2()))...), journalUnusable)
		third := m.other()
		diags := m.note(third.Plan(m.ctx, Job1()))
		m.wantDiags(diags, "ERROR: Journal not usable")
		m.wantWords(diags, "could not be cleaned up", "Nothing was sent.")
		m.OK(m.note(third.Plan(m.ctx, attrs{"prompt": "Another one"})))
		m.WantPosts(2, 0)
		m.inBucket(f, 2)
	})
	// Red without: withdrawn.
	row("X14_a_refused_request_cannot_be_removed", func(m *Matrix, f *fakeS3) {
		m.nextRun()
		m.Script(faultserver.Create, faultserver.Answer(400, `{"error":"no"}`))
		f.fail(status(http.MethodDelete, 403))
		m.wantDiags(m.Run(Job1()), createFailed, journalUnusable)
		m.inBucket(f, 1)
	})
	// Red without: the error of a claim in TakeOver.
	row("X14_a_job_cannot_be_claimed", func(m *Matrix, f *fakeS3) {
		m.nextRun()
		id := m.created(Job1())
		m.forget()
		f.fail(status(http.MethodPut, 403))
		m.nextRun()
		diags := m.Run(Job1())
		m.wantDiags(diags, takeOverPlanned, createFailed)
		m.wantWords(diags, "Nothing was sent to project proj_1 now.", "could not be claimed", nothingSentBecause)
		m.WantPosts(1, 0)
		f.fail(nil)
		m.nextRun()
		m.takesOver(Job1(), id)
	})
	for name, ahead := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		// Red without: Age by the store's clock.
		row("X15_the_bucket_is_an_hour_"+name, func(m *Matrix, f *fakeS3) {
			f.runAhead(ahead)
			m.nextRun()
			m.OK(m.Run(noWait()))
			id := m.cli.Get("id").(string)
			m.forget()
			m.Always(faultserver.Get, faultserver.Answer(404, `{"error":"not found"}`))
			m.nextRun()
			m.wantDiags(m.Run(noWait()), takeOverPlanned, createFailed) // too new to be gone
			m.Always(faultserver.Get, nil)
			m.nextRun()
			m.takesOver(noWait(), id)
			m.WantPosts(1, 0)
		})
		// The machine of the earlier run has another clock than the bucket and than this one.
		row("X15_the_earlier_runner_is_an_hour_"+name, func(m *Matrix, f *fakeS3) {
			f.runAhead(ahead)
			m.nextRun()
			m.OK(m.Run(noWait()))
			id := m.cli.Get("id").(string)
			m.forget()
			f.runAhead(0)
			m.nextRun()
			m.takesOver(noWait(), id)
			m.WantPosts(1, 0)
		})
	}
	// Red without: maxAge in load.
	row("X15_entries_of_a_month", func(m *Matrix, f *fakeS3) {
		m.nextRun()
		id := m.created(Job1())
		m.forget()
		f.age(29 * 24 * time.Hour)
		m.nextRun()
		m.takesOver(Job1(), id)
		m.forget()
		f.age(31 * 24 * time.Hour)
		m.nextRun()
		m.OK(m.Run(Job1()))
		m.WantPosts(2, 0)
		m.inBucket(f, 1)
	})
	// Red without: the takeover of jobs and of messages.
	row("X10_the_disk_is_wiped", func(m *Matrix, f *fakeS3) {
		wipe := func() {
			m.process.Close(m.ctx)
			if err := errors.Join(os.RemoveAll(m.data), os.Mkdir(m.data, 0o700)); err != nil {
				m.Fatal(err)
			}
			m.nextRun()
		}
		next := fakecli.With(noWait(), Job2()) // a wait would last until no older end can be shown
		m.nextRun()
		id := m.created(Job1())
		m.forget()
		wipe()
		m.takesOver(Job1(), id)
		wipe()
		before := *m.cli
		m.wantDiags(m.Run(next), messagePlanned)
		*m.cli = before
		wipe()
		m.wantDiags(m.Run(next), messagePlannedOver, messageFound)
		m.WantPosts(1, 1)
		wipe()
		m.OK(m.Run(next))
		m.inBucket(f, 0)
	})
	// Red without: seen in Read, and in ModifyPlan.
	row("X12_prompts_A_B_A_B_in_bucket", func(m *Matrix, f *fakeS3) {
		var diags []*tfprotov6.Diagnostic
		for _, job := range []attrs{Job1(), Job2(), Job1(), Job2()} {
			m.nextRun()
			diags = append(diags, m.Run(job)...)
			m.process.Close(m.ctx)
			m.inBucket(f, 1)
		}
		m.wantDiags(diags, messagePlanned, messagePlanned, messagePlanned)
		m.WantPosts(1, 3)
	})
	return rows
}
