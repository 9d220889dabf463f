// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"fmt"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// waitRows are answers to polls that say nothing, or nothing true, about the end.
func waitRows() []Row {
	const hour = "The configured timeout expired after waiting 1h0m0s"
	endless := harness.Always(simulator.Script{Duration: 2 * time.Hour})
	rows := []Row{
		// Red when Terminal means "everything but active".
		{name: "P01_unknown_status_until_timeout", clock: true, Test: func(m *Matrix) {
			m.Always(faultserver.Get, shows(attrs{"status": "reviewing\u001b[2J"}))
			job := fakecli.With(Job1(), attrs{"timeouts": attrs{"create": "2m"}})
			m.kept(m.Run(job), "The configured timeout expired after waiting 2m0s", `reviewing`, "u001b[2J")
			m.wantNoWords("\x1b")
			m.OK(m.refresh())
			m.wantDiags(m.plan(job), stillRunning)
			m.wantWords(`(status "reviewing\u001b[2J") finishes and sends nothing.`)
			m.Always(faultserver.Get, nil)
			m.resumed(job)
		}},
		{name: "P01_unknown_status_then_end", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Get, shows(attrs{"status": "reviewing"}), shows(attrs{"status": "COMPLETED"}), shows(attrs{"status": "done"}))
			m.OK(m.Run(Job1()))
			m.wantEnd("completed", 1, 0)
		}},
		// Red without: noStatus starting again with every status seen.
		{name: "P02_no_status_now_and_then", clock: true, Test: func(m *Matrix) {
			missing, active := shows(attrs{"status": nil}), shows(nil)
			m.Script(faultserver.Get, missing, missing, active, missing, missing, active, missing)
			m.OK(m.Run(Job1()))
			m.WantState("completed")
		}},
		// Red when progress.classify takes a link for the end.
		{name: "P04_link_while_active", clock: true, script: func(string, int) simulator.Script {
			return simulator.Script{Duration: 20 * time.Second, Extra: map[string]any{"prLink": "https://example.com/pull/1"}}
		}, Test: func(m *Matrix) {
			m.OK(m.Run(Job1()))
			m.WantState("completed")
			if gets := m.Count(faultserver.Get); gets < 3 {
				m.Errorf("polled %d times only", gets)
			}
			m.wantAttr("pr_link", "https://example.com/pull/1")
		}},
		// Red without: Unavailable as a reason to poll on in progress.classify.
		{name: "P06_ten_minutes_of_faults", clock: true, script: harness.Always(simulator.Script{Duration: 5 * time.Minute}), Test: func(m *Matrix) {
			faults := []faultserver.Play{
				faultserver.Answer(500, ""), faultserver.Answer(502, "<html>bad gateway", "Content-Type: text/html"),
				faultserver.Answer(503, `{"error":"later"}`, "Retry-After: 3"), faultserver.Answer(504, "{}"),
				faultserver.Reset, faultserver.EOF, faultserver.Raw("nonsense\r\n\r\n"), faultserver.Answer(200, ""),
				faultserver.Truncated(200, JobJSON(nil), 40), faultserver.Answer(200, JobJSON(nil)[:40]), faultserver.Answer(200, "null"),
				faultserver.Oversize(200, 2<<20), faultserver.Answer(408, ""), faultserver.Stall,
			}
			start, n := time.Now(), 0
			m.Always(faultserver.Get, func(x *faultserver.Exchange) {
				if time.Since(start) > 10*time.Minute {
					faultserver.Healthy(x)
					return
				}
				n++
				faults[n%len(faults)](x)
			})
			m.OK(m.Run(Job1()))
			m.wantEnd("completed", 1, 0)
			m.wantTook(start, 10*time.Minute, 12*time.Minute)
			if n < 3*len(faults) {
				m.Errorf("%d faults only", n)
			}
		}},
		// Red without: the defaults of timeouts.
		{name: "P06_an_hour_in_a_create", clock: true, script: endless, Test: func(m *Matrix) {
			m.kept(m.Run(Job1()), hour)
		}},
		{name: "P06_an_hour_in_an_update", clock: true, script: turns(simulator.Script{Duration: 2 * time.Hour}), Test: func(m *Matrix) {
			m.created(Job1())
			m.wantDiags(m.Run(Job2()), messagePlanned, cutShort)
			m.wantWords(hour)
		}},
		{name: "P06_an_hour_in_a_data_source", clock: true, script: endless, Test: func(m *Matrix) {
			id := m.Sim.Create(harness.Project, "manual").ID
			m.wantDiags(m.readData(attrs{"id": id, "wait": attrs{"enabled": true}}), cutShort)
			m.wantWords(hour)

			m.Always(faultserver.Get, faultserver.Answer(503, ""))
			start := time.Now()
			m.wantDiags(m.readData(attrs{"id": id}), readFailed)
			m.wantWords("503 Service Unavailable")
			m.wantTook(start, time.Minute, time.Minute)
		}},
		{name: "P06_an_hour_in_an_action", clock: true, script: endless, Test: func(m *Matrix) {
			progress, diags := m.cli.Invoke(m.ctx, "agent_start_job", Job1())
			m.wantDiags(m.note(diags), cutShort)
			m.wantWords(hour)
			// A line each ten seconds, or at the next poll after them.
			if n := len(progress) - 1; n < 180 || n > 360 {
				m.Errorf("%d lines of progress in an hour", n)
			}
		}},
		// Red without: NewJobGrace in progress.classify.
		{name: "P08_404_just_after_create", clock: true, Test: func(m *Matrix) {
			start := time.Now()
			m.Always(faultserver.Get, func(x *faultserver.Exchange) {
				if time.Since(start) < 50*time.Second {
					faultserver.Answer(404, `{"error":"job not found"}`)(x)
					return
				}
				faultserver.Healthy(x)
			})
			m.OK(m.Run(Job1()))
			m.wantEnd("completed", 1, 0)
		}},
		// Red without: the 60 s in NewJobGrace, 404 as the end of a wait, and each text of missingJob.
		{name: "P09_404_later_in_the_wait", clock: true, script: harness.Always(simulator.Script{Duration: 5 * time.Minute}), Test: func(m *Matrix) {
			start := time.Now()
			notFound := faultserver.Answer(404, `{"error":"job not found"}`)
			m.Always(faultserver.Get, func(x *faultserver.Exchange) {
				if time.Since(start) < 70*time.Second {
					faultserver.Healthy(x)
					return
				}
				notFound(x)
			})
			m.wantDiags(m.Run(Job1()), jobNotFound)
			m.wantWords("so this run stopped waiting for it. The service had accepted the prompt. The state keeps the job as last read", "-replace=ADDRESS")
			m.wantEnd("active", 1, 0)
			m.wantTook(start, 0, 90*time.Second)

			m.wantDiags(m.Run(Job1()), jobNotFound, stillRunning, "ERROR: Agent job not found")
			m.wantWords("so this run stopped waiting for it. This apply sent nothing to it. The state keeps the job as last read")
			warn := fakecli.With(Job1(), attrs{"wait": attrs{"on_timeout": "warn"}}) // no later apply could do better
			m.wantDiags(m.Run(warn), stillRunning, "ERROR: Agent job not found")
			m.wantEnd("active", 1, 0)
			m.Always(faultserver.Get, nil)
			m.resumed(Job1())

			m.plan(Job2())
			m.Always(faultserver.Get, notFound)
			m.wantDiags(m.apply(Job2()), "ERROR: Agent job not found")
			m.wantWords("so this run stopped waiting for it. The service had accepted the message, and the new prompt is in the state. The state keeps")
			m.WantPosts(1, 1)
		}},
		// Red without: the hint of an error in a create.
		{name: "P09_404_later_in_the_wait_on_timeout_error", clock: true, Test: func(m *Matrix) {
			m.Always(faultserver.Get, faultserver.Answer(404, `{"error":"job not found"}`))
			m.wantDiags(m.Run(fakecli.With(Job1(), attrs{"wait": attrs{"on_timeout": "error"}})), "ERROR: Agent job not found")
			m.wantWords("the job is tainted: the next apply starts a second job", "untaint ADDRESS")
			m.WantPosts(1, 0)
		}},
		// Red without: the mark gone once a wait has found the job.
		{name: "P09_404_found_by_a_wait_and_gone_again", clock: true, Test: func(m *Matrix) {
			m.OK(m.Run(noWait()))
			notFound := faultserver.Answer(404, `{"error":"job not found"}`)
			m.Always(faultserver.Get, notFound)
			m.wantDiags(m.refresh(), jobNotFound)
			m.Always(faultserver.Get, nil)
			m.wantDiags(m.plan(Job1()), stillRunning)
			m.OK(m.apply(Job1()))
			m.Always(faultserver.Get, notFound)
			m.wantDiags(m.refresh(), jobNotFound)
		}},
	}
	for status, says := range map[string]string{"archived": "WARNING: Agent job archived", "failed": "WARNING: Agent job failed"} {
		// Red without: each warning of await.
		rows = append(rows, Row{name: "P01_" + status, clock: true, script: harness.Always(simulator.Script{Duration: 20 * time.Second, Status: status}), Test: func(m *Matrix) {
			m.wantDiags(m.Run(fakecli.With(Job1(), attrs{"wait": attrs{"on_failure": "warn"}})), says)
			m.wantWords(m.id())
			m.WantState(status)
		}})
	}
	// Red without: the mark of the first run in await.
	rows = append(rows,
		Row{name: "P01_failed_in_the_wait_after_a_timeout", clock: true, script: harness.Always(simulator.Script{Duration: 20 * time.Second, Status: "failed"}), Test: func(m *Matrix) {
			job := fakecli.With(Job1(), attrs{"timeouts": attrs{"create": "10s"}})
			m.kept(m.Run(job))
			m.wantDiags(m.Run(job), stillRunning, "ERROR: Agent job failed")
			m.wantWords("The next apply starts a new job with the same prompt.")
			m.wantDiags(m.plan(job), "WARNING: New agent job replaces failed one")
		}})
	// Red without: maxNoStatus in progress.classify (it would wait until the timeout).
	for name, status := range map[string]any{"null": nil, "missing": Omit{}, "number": 3, "empty": ""} {
		rows = append(rows, Row{name: "P02_status_" + name, clock: true, Test: func(m *Matrix) {
			m.Always(faultserver.Get, shows(attrs{"status": status}))
			m.kept(m.Run(Job1()), "The service's responses have no status")
			m.wantGets(3)
			m.Always(faultserver.Get, nil)
			m.resumed(Job1())
		}})
	}
	// Red without: Refused as the end of a wait in progress.classify.
	for _, status := range []int{401, 403} {
		refused := faultserver.Answer(status, `{"error":"key expired"}`)
		answered := fmt.Sprintf("The service responded with %d", status)
		row := func(name string, test func(m *Matrix)) {
			rows = append(rows, Row{name: fmt.Sprintf("P07_%d_in_%s", status, name), clock: true, Test: test})
		}
		row("a_create", func(m *Matrix) {
			m.Script(faultserver.Get, shows(nil), refused)
			m.kept(m.Run(Job1()), answered, "key expired", "Check admin_key")
			m.wantGets(2)
			m.resumed(Job1())
		})
		row("an_update", func(m *Matrix) {
			m.created(Job1())
			m.plan(Job2())
			m.Script(faultserver.Get, shows(nil), refused)
			m.wantDiags(m.apply(Job2()), cutShort)
			m.wantWords(answered, "Check admin_key", "The service accepted the message, and the new prompt is in the state. The next apply resumes waiting without sending anything.")
			m.wantEnd("active", 1, 1)
			m.resumed(Job2())
		})
		// Red without: fails in cutShort. An error taints, so the next apply does not wait on.
		row("a_create_with_on_timeout_error", func(m *Matrix) {
			m.Script(faultserver.Get, shows(nil), refused)
			m.wantDiags(m.Run(fakecli.With(Job1(), attrs{"wait": attrs{"on_timeout": "error"}})), cutShort)
			m.wantWords("the next apply starts a second job", "untaint ADDRESS")
			m.wantNoWords("sends nothing")
			if !m.cli.Tainted {
				m.Error("not tainted")
			}
			m.cli.Tainted = false // as untaint does
			m.WantState("active")
			m.resumed(Job1())
		})
	}
	return rows
}
