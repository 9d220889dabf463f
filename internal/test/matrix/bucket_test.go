// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"net/http"
	"sync/atomic"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// inBucket is a row whose journal is in a bucket.
func inBucket(name string, test func(m *Matrix, b *fakes3.Server)) Row {
	return Row{name: name, Test: func(m *Matrix) {
		b := fakes3.New(m)
		m.config["journal"] = attrs{"url": b.URL + "&state=a"}
		m.nextRun()
		test(m, b)
	}}
}

// bucketRows are what a provider does with the bucket that holds its journal.
func bucketRows() []Row {
	return []Row{
		// Red without: JournalNotWritten; keep.
		inBucket("X14_after_the_POST", func(m *Matrix, b *fakes3.Server) {
			m.Script(faultserver.Create, func(x *faultserver.Exchange) {
				b.SetHook(func(*http.Request) int { return http.StatusForbidden })
				faultserver.Healthy(x)
			})
			m.wantDiags(m.Run(noWait()), journalUnwritten)
			m.wantWords("job "+m.id()+" in project proj_1 is in the state", "could not be written")
			m.WantState("active")
			b.SetHook(nil)
			m.nextRun()
			m.OK(m.Run(noWait()))
			m.WantPosts(1, 0)
		}),
		// What a provider process asks of the store for one job, beside the proof, which is three writes and
		// two reads, and its plan, which lists, and reads a record that is there.
		inBucket("S06_requests_to_the_store", func(m *Matrix, b *fakes3.Server) {
			var n atomic.Int64
			b.SetHook(func(*http.Request) int { n.Add(1); return 0 })
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
			within("create over a record", list+read+proof+5, func() diagnostics { return m.apply(changed) })
		}),
	}
}
