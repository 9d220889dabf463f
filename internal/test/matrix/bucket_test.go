// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"net/http"
	"strings"

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
		if method == "" || r.Method == method {
			return status
		}
		return 0
	})
}

// wantEntries asserts how many entries the bucket holds, and that they hold no
// prompt and no key.
func (b *bucket) wantEntries(n int) {
	b.m.Helper()
	b.m.shutDown()
	b.Lock()
	defer b.Unlock()
	var text string
	for _, o := range b.Objects {
		text += string(o)
	}
	if len(b.Objects) != n || strings.Contains(text, harness.CanaryKey) || strings.Contains(text, "Add a") {
		b.m.Errorf("entries: %q, want %d without a prompt or the key", text, n)
	}
}

// inBucket is a row whose journal is in a bucket.
func inBucket(name string, test func(m *Matrix, b *bucket)) Row {
	return Row{name: name, Test: func(m *Matrix) {
		b := &bucket{fakes3.New(m), m}
		m.config["journal"] = attrs{"url": b.URL}
		m.nextRun()
		test(m, b)
	}}
}

// bucketRows are faults of the bucket that holds the journal.
func bucketRows() []Row {
	const nothingSent = "The prompt was not sent to project proj_1, so no job was started."
	return []Row{
		// Red without: the problem of record in Sending.
		inBucket("X14_before_the_POST_responds_404", func(m *Matrix, b *bucket) {
			b.fail("", 404)
			m.wantDiags(m.Run(Job1()), journalUnusable, createFailed)
			m.wantWords("The journal in s3://bucket/a/prefix/", "could not be listed", "could not be written", nothingSent, "Check that this run can list, read, write and delete there.")
			m.wantEnd("", 0, 0)
			b.SetHook(nil)
			m.nextRun()
			m.OK(m.Run(noWait()))

			b.fail("", 404)
			m.nextRun()
			m.wantDiags(m.planAndApply(fakecli.With(noWait(), Job2())), journalUnusable, messagePlanned, messageFailed)
			m.wantWords("The prompt was not sent to job "+m.id()+" in project proj_1, so the job and the state are unchanged.", "Check that this run can list, read, write and delete there.")
			m.WantPosts(1, 0)
		}),
		// Red without: journalNotWritten; the mark of the entry in the state.
		inBucket("X14_after_the_POST", func(m *Matrix, b *bucket) {
			m.Script(faultserver.Create, func(x *faultserver.Exchange) { b.fail("", 403); faultserver.Healthy(x) })
			m.wantDiags(m.Run(noWait()), journalUnwritten)
			m.wantWords("job "+m.id()+" in project proj_1 is in the state", "could not be written")
			m.WantState("active")
			b.wantEntries(1)
			b.SetHook(nil)
			m.nextRun()
			m.OK(m.Run(noWait()))
			b.wantEntries(0)
			m.WantPosts(1, 0)
		}),
		// A plan may lack the right to delete: a later one removes. It says so only if its apply would share a job. An apply says it always.
		//
		// Red without: the error of Remove staying in the log; PlansCreate; NotRemoved.
		inBucket("X14_entries_cannot_be_removed", func(m *Matrix, b *bucket) {
			m.created(Job1())
			b.fail(http.MethodDelete, 403)
			m.nextRun()
			m.OK(m.Run(Job1()))
			second := m.other()
			m.wantDiags(m.note(second.Plan(m.ctx, Job1())), entryNotRemoved) // as for a count that was raised
			m.wantWords(m.id(), "Plan again with credentials that can delete")
			m.wantDiags(m.Run(Job2()), messagePlanned, journalUnusable) // of the apply, whose role must be able to
			b.wantEntries(2)
			b.SetHook(nil)
			m.nextRun()
			m.OK(m.Run(Job2()))
			b.wantEntries(0)
		}),
		// Red without: withdrawn; reportProblem, for a create and for a message.
		inBucket("X14_a_refused_request_cannot_be_removed", func(m *Matrix, b *bucket) {
			m.Script(faultserver.Create, faultserver.Answer(400, `{"error":"no"}`))
			b.fail(http.MethodDelete, 403)
			m.wantDiags(m.Run(Job1()), createFailed, journalUnusable)
			b.wantEntries(1)

			b.SetHook(nil)
			m.nextRun()
			m.created(Job2())
			m.nextRun()
			m.wantDiags(m.plan(Job1()), otherJob, messagePlanned) // nobody knows that it had no effect
			m.Script(faultserver.Message, faultserver.Answer(400, `{"error":"no"}`))
			b.fail(http.MethodDelete, 403)
			m.wantDiags(m.apply(Job1()), messageFailed, journalUnusable)
		}),
	}
}
