// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"net/http"
	"path"
	"strings"
	"sync/atomic"

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

// fail lets requests fail with a status from now on: those that list, read or write, or with an empty op any.
func (b *bucket) fail(op string, status int) {
	b.SetHook(func(r *http.Request, _ func()) int {
		if op == "" || fakes3.Op(r) == op {
			return status
		}
		return 0
	})
}

// wantRecords asserts how many records the bucket holds, and that they hold no prompt and no key.
func (b *bucket) wantRecords(n int) {
	b.m.Helper()
	b.m.shutDown()
	b.Lock()
	defer b.Unlock()
	var text string
	records := 0
	for name, object := range b.Objects {
		if !strings.HasPrefix(path.Base(name), "_") { // those prove that the store honours conditions
			records++
		}
		text += string(object)
	}
	if records != n || strings.Contains(text, harness.CanaryKey) || strings.Contains(text, "Add a") {
		b.m.Errorf("records: %q, want %d without a prompt or the key", b.Objects, n)
	}
}

// object is what a request is about, as it is now.
func (b *bucket) object(r *http.Request) string {
	b.Lock()
	defer b.Unlock()
	return string(b.Objects[strings.TrimPrefix(r.URL.Path, "/bucket/")])
}

// inBucket is a row whose journal is in a bucket.
func inBucket(name string, test func(m *Matrix, b *bucket)) Row {
	return Row{name: name, Test: func(m *Matrix) {
		b := &bucket{fakes3.New(m), m}
		m.config["journal"] = attrs{"url": b.URL + "&state=a"}
		m.nextRun()
		test(m, b)
	}}
}

// bucketRows are faults of the bucket that holds the journal.
func bucketRows() []Row {
	const nothingSent = "The prompt was not sent to project proj_1, so no job was started."
	return []Row{
		// Red without: the error of Sending.
		inBucket("X14_before_the_POST_responds_404", func(m *Matrix, b *bucket) {
			b.fail("", 404)
			m.wantDiags(m.Run(Job1()), journalUnusable, createFailed)
			m.wantWords("The journal in s3://bucket/a/prefix/", "could not be listed", "could not be written", nothingSent, "Check that this run can read and write there.")
			m.wantEnd("", 0, 0)
			b.SetHook(nil)
			m.nextRun()
			m.OK(m.Run(noWait()))

			b.fail("", 404)
			m.nextRun()
			m.wantDiags(m.planAndApply(fakecli.With(noWait(), Job2())), journalUnusable, messageFailed)
			m.wantWords("The prompt was not sent to job "+m.id()+" in project proj_1. Another run may have sent it", "Check that this run can read and write there.")
			m.WantPosts(1, 0)
		}),
		// Red without: JournalNotWritten; keep.
		inBucket("X14_after_the_POST", func(m *Matrix, b *bucket) {
			m.Script(faultserver.Create, func(x *faultserver.Exchange) { b.fail("", 403); faultserver.Healthy(x) })
			m.wantDiags(m.Run(noWait()), journalUnwritten)
			m.wantWords("job "+m.id()+" in project proj_1 is in the state", "could not be written")
			m.WantState("active")
			b.wantRecords(1)
			b.SetHook(nil)
			m.nextRun()
			m.OK(m.Run(noWait()))
			m.WantPosts(1, 0)
		}),
		// A role without the right to list, as many have: S3 then says of what is missing that it is denied. Nothing is deleted at all.
		//
		// Red without: isDenied in Peek; a create that claims before it reads.
		inBucket("S01_no_right_to_list", func(m *Matrix, b *bucket) {
			b.SetHook(func(r *http.Request, _ func()) int {
				b.Lock()
				defer b.Unlock()
				switch _, exists := b.Objects[strings.TrimPrefix(r.URL.Path, "/bucket/")]; {
				case fakes3.Op(r) == "list", fakes3.Op(r) == "read" && !exists, r.Method == http.MethodDelete:
					return http.StatusForbidden
				}
				return 0
			})
			m.starts(Job1())
			id := m.id()
			m.nextRun()
			m.OK(m.Run(fakecli.With(noWait(), Job2())))
			m.nextRun()
			m.OK(m.Run(fakecli.With(noWait(), Job2())))
			m.cli.Forget()
			m.nextRun()
			m.adopts(fakecli.With(noWait(), Job2()), id)
			m.nextRun()
			if diags := m.note(m.cli.Destroy(m.ctx)); fakecli.Failed(diags) { // it may warn that the job is active
				m.Error(diags)
			}
			m.nextRun()
			m.starts(Job2())
			b.wantRecords(1)
			m.WantPosts(2, 1)
		}),
		// Plans only read. Red without: prove in Claim alone.
		inBucket("S02_a_plan_may_not_write", func(m *Matrix, b *bucket) {
			m.starts(Job1())
			b.fail("write", 403)
			for name, edit := range map[string]func(c *fakecli.CLI){
				"a message": func(*fakecli.CLI) {}, "tainted": func(c *fakecli.CLI) { c.Tainted = true },
				"-replace": func(c *fakecli.CLI) { c.Forced = true }, "a create": func(c *fakecli.CLI) { c.Forget(); c.Name = "another" },
			} {
				m.nextRun()
				c := *m.cli
				edit(&c)
				if diags := m.note(c.Plan(m.ctx, Job2())); fakecli.Failed(diags) {
					m.Errorf("%s: %s", name, fakecli.Text(diags))
				}
			}
		}),
		// Some stores ignore a condition, so that two runs could send one prompt. Red without: prove.
		inBucket("S03_the_store_ignores_if_none_match", func(m *Matrix, b *bucket) {
			b.IgnoreIfNoneMatch = true
			m.wantDiags(m.Run(Job1()), createFailed)
			m.wantWords("condition", nothingSent)
			m.wantEnd("", 0, 0)
		}),
		inBucket("S03_the_store_ignores_if_match", func(m *Matrix, b *bucket) {
			b.IgnoreIfMatch = true
			m.wantDiags(m.Run(Job1()), createFailed)
			m.wantWords("condition", nothingSent)
			m.wantEnd("", 0, 0)
		}),
		// Each write arrives, and its response is lost; a library may then repeat it. Red without: the second read of put.
		inBucket("S04_the_responses_of_writes_are_lost", func(m *Matrix, b *bucket) {
			b.SetHook(func(r *http.Request, apply func()) int {
				if fakes3.Op(r) != "write" || strings.HasPrefix(path.Base(r.URL.Path), "_") {
					return 0
				}
				before := b.object(r)
				apply()
				if b.object(r) == before { // it was refused
					return 0
				}
				return http.StatusServiceUnavailable
			})
			id := m.created(Job1())
			m.nextRun()
			m.OK(m.Run(fakecli.With(noWait(), Job2())))
			m.cli.Forget()
			m.nextRun()
			m.adopts(fakecli.With(noWait(), Job2()), id)
			m.WantPosts(1, 1)
		}),
		// What could not be put back counts as sent: nobody knows that it had no effect. Red without: Withdrawn; reportProblem.
		inBucket("S05_a_refused_request_cannot_be_put_back", func(m *Matrix, b *bucket) {
			m.Script(faultserver.Create, func(x *faultserver.Exchange) { b.fail("write", 403); faultserver.Answer(400, `{"error":"no"}`)(x) })
			m.wantDiags(m.Run(Job1()), createFailed, journalUnusable)
			b.SetHook(nil)

			m.nextRun()
			m.cli.Name = "another"
			m.created(Job2())
			m.nextRun()
			m.OK(m.plan(Job1()))
			m.Script(faultserver.Message, func(x *faultserver.Exchange) { b.fail("write", 403); faultserver.Answer(400, `{"error":"no"}`)(x) })
			m.wantDiags(m.apply(Job1()), messageFailed, journalUnusable)
		}),
		// What a provider process asks of the store for one job, beside the proof, which is three writes and two reads, and its plan, which lists, and reads
		// a record that is there.
		inBucket("S06_requests_to_the_store", func(m *Matrix, b *bucket) {
			var n atomic.Int64
			b.SetHook(func(*http.Request, func()) int { n.Add(1); return 0 })
			const list, read, proof = 1, 1, 5
			within := func(what string, most int64, step func() diagnostics) {
				m.nextRun()
				n.Store(0)
				if diags := step(); fakecli.Failed(diags) {
					m.Error(fakecli.Text(diags))
				}
				m.shutDown()
				if got := n.Load(); got > most {
					m.Errorf("%s: %d requests to the store, want at most %d", what, got, most)
				}
			}
			m.plan(noWait())
			within("create", list+read+proof+3, func() diagnostics { return m.apply(noWait()) })
			changed := fakecli.With(noWait(), Job2())
			m.plan(changed)
			within("message", list+read+proof+3, func() diagnostics { return m.apply(changed) })
			within("plan without changes", 0, func() diagnostics { return append(m.refresh(), m.plan(changed)...) })
			within("destroy", 2, func() diagnostics { return m.note(m.cli.Destroy(m.ctx)) })
			m.nextRun()
			m.plan(changed)
			within("create over a record", list+read+proof+4, func() diagnostics { return m.apply(changed) })
		}),
	}
}
