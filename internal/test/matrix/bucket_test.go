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
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// bucket is the bucket that holds a row's journal.
type bucket struct {
	*fakes3.Server
	m *Matrix
}

// fail lets requests of a method fail with a status from now on; an empty method is any.
func (b *bucket) fail(method string, status int) {
	b.SetHook(func(r *http.Request, _ func()) int {
		if method == "" || r.Method == method || method == listing && r.URL.Query().Has("list-type") {
			return status
		}
		return 0
	})
}

const listing = "listing" // stands for a method in bucket.fail

// entries are the texts of all objects.
func (b *bucket) entries() (texts []string) {
	b.Lock()
	defer b.Unlock()
	for _, o := range b.Objects {
		texts = append(texts, string(o.Text))
	}
	return texts
}

// wantEntries asserts how many entries the bucket holds, and that they hold no
// prompt and no key.
func (b *bucket) wantEntries(n int) {
	b.m.Helper()
	entries := b.entries()
	if text := strings.Join(entries, ""); len(entries) != n || strings.Contains(text, harness.CanaryKey) || strings.Contains(text, "Add a") {
		b.m.Errorf("entries: %q, want %d without a prompt or the key", entries, n)
	}
}

// failsAfterPOST lets the bucket fail once the service has read a create.
func (b *bucket) failsAfterPOST(play faultserver.Play) {
	b.m.Script(faultserver.Create, func(x *faultserver.Exchange) {
		b.fail("", 403)
		play(x)
	})
}

// addsTo returns a function that adds a row whose journal is in a bucket.
func addsTo(rows *[]Row) func(name string, test func(m *Matrix, b *bucket)) {
	return func(name string, test func(m *Matrix, b *bucket)) {
		*rows = append(*rows, Row{name: name, Test: func(m *Matrix) {
			b := &bucket{fakes3.New(m), m}
			m.config["journal"] = attrs{"url": b.URL}
			m.nextRun()
			test(m, b)
		}})
	}
}

// unusableRows are buckets that cannot be used before the POST.
func unusableRows() (rows []Row) {
	const nothingSent = "The request was not sent to project proj_1, so no job was started."
	row := addsTo(&rows)
	for name, c := range map[string]struct {
		method string
		status int
	}{"responds_403": {"", 403}, "responds_404": {"", 404}, "responds_403_to_the_listing": {listing, 403}} {
		// Red without: the error of ready in TakeOver.
		row("X14_before_the_POST_"+name, func(m *Matrix, b *bucket) {
			b.fail(c.method, c.status)
			m.wantDiags(m.Run(Job1()), journalUnusable, createFailed)
			m.wantWords("The journal in s3://bucket/a/prefix/ could not be read", "The prompt was not sent to project proj_1.", "Check journal.url")
			m.wantEnd("", 0, 0)
			b.SetHook(nil)
			m.nextRun()
			m.OK(m.Run(Job1()))
			m.WantPosts(1, 0)

			b.fail(c.method, c.status)
			m.nextRun()
			m.wantDiags(append(m.plan(Job2()), m.apply(Job2())...), journalUnusable, messagePlanned, messageFailed)
			m.wantWords("The prompt was not sent to job "+m.id()+" in project proj_1.", "Check journal.url")
			m.WantPosts(1, 0)
		})
	}
	// Red without: the error of ready in TakeOver.
	row("X14_before_the_POST_unreachable", func(m *Matrix, b *bucket) {
		b.Close()
		m.wantDiags(m.Run(Job1()), journalUnusable, createFailed)
		m.wantWords("connection refused", "The prompt was not sent to project proj_1.")
		m.wantEnd("", 0, 0)
	})
	// Red without: the error of Sending.
	row("X14_before_the_POST_responds_403_to_writes", func(m *Matrix, b *bucket) {
		b.fail(http.MethodPut, 403)
		m.wantDiags(m.Run(Job1()), createFailed)
		m.wantWords(nothingSent, "could not be written", "Check journal.url", "Apply again to start the job.")
		m.wantNoWords("HTTPS_PROXY") // a hint about the service
		m.wantEnd("", 0, 0)
		b.wantEntries(0)
	})
	// Red without: the cause of a cancelled call in Sending (the text blamed the network).
	row("X14_before_the_POST_stopped_while_it_is_recorded", func(m *Matrix, b *bucket) {
		b.SetHook(func(r *http.Request, _ func()) int {
			if r.Method == http.MethodPut {
				m.cli.Stop()
			}
			return 0
		})
		m.wantDiags(m.Run(Job1()), createFailed)
		m.wantWords(nothingSent, "The run was interrupted.")
		m.WantPosts(0, 0)
		b.wantEntries(0)
	})
	return rows
}

// bucketRows are faults of the bucket that holds the journal.
func bucketRows() (rows []Row) {
	row := addsTo(&rows)
	for name, remaining := range map[string]int{"recovers_at_the_end": 0, "does_not_recover": 1} {
		// Red without: warnUnrecorded; the removal in retry; the mark of the entry in the state.
		row("X14_after_the_POST_and_it_"+name, func(m *Matrix, b *bucket) {
			b.failsAfterPOST(faultserver.Healthy)
			m.wantDiags(m.Run(noWait()), journalUnwritten)
			m.wantWords("job "+m.id()+" in project proj_1 is in the state", "could not be written")
			m.WantState("active")
			if remaining == 0 {
				b.SetHook(nil)
			}
			m.process.Close(m.ctx)
			b.wantEntries(remaining)
			b.SetHook(nil)
			m.nextRun()
			m.OK(m.Run(noWait()))
			b.wantEntries(0)
			m.WantPosts(1, 0)
		})
	}
	// Red without: retry.
	row("X14_after_the_POST_and_it_recovers_before_the_end", func(m *Matrix, b *bucket) {
		b.failsAfterPOST(faultserver.Healthy)
		m.wantDiags(m.Run(noWait()), journalUnwritten)
		id := m.id()
		b.SetHook(nil)
		for start := time.Now(); !strings.Contains(b.entries()[0], id); time.Sleep(10 * time.Millisecond) {
			if time.Since(start) > 10*time.Second {
				m.Fatal("the response was not recorded")
			}
		}
		m.cli.Forget()
		m.nextRun()
		m.takesOver(noWait(), id)
		m.WantPosts(1, 0)
	})
	// Red without: the pending entry, which stays when the response cannot be recorded.
	row("X14_after_the_POST_and_the_state_is_lost", func(m *Matrix, b *bucket) {
		m.config["request_timeout"] = "1s"
		m.nextRun()
		b.failsAfterPOST(m.stopping(faultserver.Healthy))
		m.wantDiags(m.Run(noWait()), journalUnwritten)
		m.process.Close(m.ctx)
		b.SetHook(nil)
		b.wantEntries(1)
		m.cli.Forget()
		m.nextRun()
		m.wantDiags(m.plan(noWait()), outcomePlanned) // an apply would wait for as long as a response could come
		m.WantPosts(1, 0)
	})
	// Red without: removal as an error of Seen; the Once of reportJournalError; Blocked.
	row("X14_entries_cannot_be_removed", func(m *Matrix, b *bucket) {
		m.created(Job1())
		second := m.other()
		m.OK(m.note(second.Run(m.ctx, Job2())))
		b.fail(http.MethodDelete, 403)
		m.nextRun()
		second.Server = m.cli.Server
		m.wantDiags(append(m.Run(Job1()), m.note(second.Run(m.ctx, Job2()))...), journalUnusable)
		third := m.other()
		m.wantDiags(m.note(third.Plan(m.ctx, Job1())), "ERROR: Journal not usable")
		m.wantWords("could not be cleaned up", "This request was not sent.")
		m.OK(m.note(third.Plan(m.ctx, attrs{"prompt": "Another one"})))
		m.WantPosts(2, 0)
		b.wantEntries(2)
	})
	// Red without: withdrawn.
	row("X14_a_refused_request_cannot_be_removed", func(m *Matrix, b *bucket) {
		m.Script(faultserver.Create, faultserver.Answer(400, `{"error":"no"}`))
		b.fail(http.MethodDelete, 403)
		m.wantDiags(m.Run(Job1()), createFailed, journalUnusable)
		b.wantEntries(1)
	})
	// Red without: the error of a claim in TakeOver.
	row("X14_a_job_cannot_be_claimed", func(m *Matrix, b *bucket) {
		id := m.forgotten(Job1())
		b.fail(http.MethodPut, 403)
		m.nextRun()
		m.wantDiags(m.Run(Job1()), takeOverPlanned, createFailed)
		m.wantWords("The prompt was not sent to project proj_1.", "could not be claimed", nothingSentBecause)
		m.WantPosts(1, 0)
		b.SetHook(nil)
		m.nextRun()
		m.takesOver(Job1(), id)
	})
	for name, ahead := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		for _, clock := range []string{"bucket", "earlier_runner"} {
			// The machine of the earlier run may have another clock than the bucket and
			// than this one. Red without: Age by the store's clock.
			row("X15_the_"+clock+"_is_an_hour_"+name, func(m *Matrix, b *bucket) {
				runAhead := func(d time.Duration) { b.Lock(); defer b.Unlock(); b.Ahead = d }
				runAhead(ahead)
				id := m.forgotten(noWait())
				if clock == "earlier_runner" {
					runAhead(0)
				} else {
					m.Always(faultserver.Get, faultserver.Answer(404, `{"error":"not found"}`))
					m.nextRun()
					m.wantDiags(m.Run(noWait()), takeOverPlanned, createFailed) // too new to be gone
					m.Always(faultserver.Get, nil)
				}
				m.nextRun()
				m.takesOver(noWait(), id)
				m.WantPosts(1, 0)
			})
		}
	}
	// Red without: maxAge in load.
	row("X15_entries_of_a_month", func(m *Matrix, b *bucket) {
		id := m.forgotten(Job1())
		age := func(d time.Duration) {
			b.Lock()
			defer b.Unlock()
			for _, o := range b.Objects {
				o.Modified = o.Modified.Add(-d)
			}
		}
		age(29 * 24 * time.Hour)
		m.nextRun()
		m.takesOver(Job1(), id)
		m.cli.Forget()
		age(31 * 24 * time.Hour)
		m.nextRun()
		m.starts(Job1(), id)
		b.wantEntries(1)
	})
	// Red without: the takeover of jobs and of messages.
	row("X10_the_disk_is_wiped", func(m *Matrix, b *bucket) {
		wipe := func() {
			m.process.Close(m.ctx)
			if err := errors.Join(os.RemoveAll(m.data), os.Mkdir(m.data, 0o700)); err != nil {
				m.Fatal(err)
			}
			m.nextRun()
		}
		next := fakecli.With(noWait(), Job2())
		id := m.forgotten(Job1())
		wipe()
		m.takesOver(Job1(), id)
		wipe()
		m.undone(func() { m.wantDiags(m.Run(next), messagePlanned) })
		wipe()
		m.wantDiags(m.Run(next), messagePlannedOver, messageFound)
		m.WantPosts(1, 1)
		wipe()
		m.OK(m.Run(next))
		b.wantEntries(0)
	})
	// Red without: pruneJournal in Read, and in ModifyPlan.
	row("X12_prompts_A_B_A_B_in_bucket", func(m *Matrix, b *bucket) {
		var diags []*tfprotov6.Diagnostic
		for _, job := range []attrs{Job1(), Job2(), Job1(), Job2()} {
			diags = append(diags, m.Run(fakecli.With(noWait(), job))...) // a wait would last until no older end can be shown
			m.process.Close(m.ctx)
			b.wantEntries(1)
			m.nextRun()
		}
		m.wantDiags(diags, messagePlanned, messagePlanned, messagePlanned)
		m.WantPosts(1, 3)
	})
	return rows
}
