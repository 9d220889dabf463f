// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// waitRows are answers to polls that say nothing, or nothing true, about the end.
func waitRows() []Row {
	return []Row{
		// Red without: the defaults of timeouts.
		{name: "P06_an_hour", clock: true, Provider: attrs{"poll": attrs{"min_interval": "1m", "max_interval": "10m"}},
			script: harness.Always(simulator.Script{Duration: 24 * time.Hour}), Test: func(m *Matrix) {
				const hour = " (1h0m0s) expired."
				m.wantDiags(m.Run(Job1()), cutShort)
				m.wantWords("The configured timeouts.create"+hour, "the next apply keeps the job, although Terraform plans to replace it, and resumes waiting without sending anything.")
				m.wantAttr("status", "active")
				m.WantPosts(1, 0)
				delete(m.config, "poll")
				m.OK(m.connect())
				if !m.cli.Tainted {
					m.Error("the resource is not tainted")
				}
				m.cli.Tainted = false // as after terraform untaint
				m.wantDiags(m.Run(Job1()), cutShort)
				m.wantWords("The configured timeouts.update" + hour)

				progress, diags := m.cli.Invoke(m.ctx, "agent_start_job", Job1())
				m.wantDiags(m.note(diags), cutShort)
				m.wantWords("The configured timeouts.invoke" + hour)
				// A line each ten seconds, or at the next poll after them.
				if n := len(progress) - 1; n < 180 || n > 360 {
					m.Errorf("%d lines of progress in an hour", n)
				}

				m.Always(faultserver.Get, faultserver.Answer(503, ""))
				start := time.Now()
				m.wantDiags(m.readData(attrs{"id": m.id()}), readFailed)
				m.wantWords("503 Service Unavailable")
				m.wantTook(start, time.Minute, time.Minute)
			}},
		// Red without: refusals that persist as the end of a wait (read.go), and LostInWait.
		{name: "P09_404_in_the_wait", clock: true, Test: func(m *Matrix) {
			start := time.Now()
			m.Always(faultserver.Get, faultserver.Answer(404, `{"error":"job not found"}`))
			m.wantDiags(m.Run(Job1()), "ERROR: Agent job not found")
			m.wantWords("This run stopped waiting for it. The service had accepted the prompt. The state keeps the job as last read", "-replace=ADDRESS")
			m.wantTook(start, time.Minute, 80*time.Second)
			m.Always(faultserver.Get, nil)
			m.cli.Tainted = false // as after terraform untaint
			m.resumed(Job1())
		}},
		// Red without: FindJob in adopt.
		{name: "P08_404_while_it_is_adopted", clock: true, Test: func(m *Matrix) {
			m.nextRun()
			id := m.created(Job1())
			m.cli.Forget()
			m.nextRun()
			start := time.Now()
			m.Always(faultserver.Get, func(x *faultserver.Exchange) {
				if time.Since(start) < 50*time.Second {
					faultserver.Answer(404, `{"error":"job not found"}`)(x)
					return
				}
				faultserver.Healthy(x)
			})
			m.adopts(Job1(), id)
		}},
		// Red without: each warning of await.
		{name: "P01_archived", clock: true, script: harness.Always(simulator.Script{Duration: 20 * time.Second, Status: "archived"}), Test: func(m *Matrix) {
			m.wantDiags(m.Run(fakecli.With(Job1(), attrs{"wait": attrs{"on_failure": "warn"}})), "WARNING: Agent job archived")
			m.wantWords(m.id())
			m.WantState("archived")
		}},
	}
}
