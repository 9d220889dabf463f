// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/faultserver"
)

func limitRows() []row {
	var rows []row
	// Red without: the branch for 429 in Client.post (F); each pause without its case in retryAfter.
	for _, c := range []struct {
		name        string
		header      func(time.Time) []string
		least, most time.Duration // between the refused POST and the next
	}{
		{"C09_without_retry_after", header(), 5 * time.Second, 10 * time.Second},
		{"C09_seconds", header("Retry-After: 40"), 40 * time.Second, 41 * time.Second},
		{"C09_zero_seconds", header("Retry-After: 0"), 0, time.Second},
		{"C09_date", dates(45*time.Second, 0, true), 44 * time.Second, 46 * time.Second},
		{"C09_date_without_date_header", dates(45*time.Second, 0, false), 44 * time.Second, 46 * time.Second},
		{"C09_date_past", dates(-time.Hour, 0, true), 0, time.Second},
		{"C09_negative", header("Retry-After: -5"), 5 * time.Second, 10 * time.Second},
		{"C09_garbage", header("Retry-After: soon"), 5 * time.Second, 10 * time.Second},
		// Red without: the answer's Date header in retryAfter.
		{"P12_retry_after_date_clock_ahead", dates(45*time.Second, time.Hour, true), 44 * time.Second, 46 * time.Second},
		{"P12_retry_after_date_clock_behind", dates(45*time.Second, -time.Hour, true), 44 * time.Second, 46 * time.Second},
	} {
		rows = append(rows, row{name: c.name, clock: true, Test: func(m *matrix) {
			m.Script(faultserver.Create, limited(c.header))
			m.OK(m.Run(job1()))
			m.WantState("completed")
			m.WantPosts(2, 0)
			if jobs := len(m.Sim.Jobs()); jobs != 1 {
				m.Errorf("the service has %d jobs", jobs)
			}
			m.wantPause(faultserver.Create, c.least, c.most)
		}})
	}
	return append(rows,
		row{name: "C09_message", clock: true, Test: func(m *matrix) {
			m.created(job1())
			m.Script(faultserver.Message, limited(header("Retry-After: 30")))
			diags := m.Run(attrs{"prompt": "Add a tutorial"})
			m.wantDiags(diags, "WARNING: New prompt is sent to the existing agent job")
			m.WantState("completed")
			m.WantPosts(1, 2)
			m.wantPause(faultserver.Message, 30*time.Second, 31*time.Second)
			if prompts := m.Sim.Jobs()[0].Prompts; len(prompts) != 2 {
				m.Errorf("the job has the prompts %q", prompts)
			}
		}},
		// Red without: ErrPauseTooLong in gate.limited (the row would wait for its timeout).
		row{name: "C09_beyond_the_deadline", clock: true, Test: func(m *matrix) {
			m.Script(faultserver.Create, limited(header("Retry-After: 3600")))
			start := time.Now()
			diags := m.Run(with(job1(), attrs{"timeouts": attrs{"create": "10m"}}))
			if took := time.Since(start); took > time.Second {
				m.Errorf("gave up after %s", took)
			}
			m.wantDiags(diags, createFailed)
			m.wantWords(diags, "Nothing was sent to the service, so no job was started.",
				"The rate limit lasts longer than the time that is left: the next request may go out in 1h0m0s.", "raise timeouts")
			m.wantNoState()
			m.WantPosts(1, 0) // the one that was answered 429
			m.OK(m.connect())
			m.OK(m.Run(job1()))
			m.WantPosts(2, 0)
		}},
	)
}

// wantPause asserts the time between the first two requests of a kind.
func (m *matrix) wantPause(kind faultserver.Kind, least, most time.Duration) {
	m.Helper()
	var times []time.Time
	for _, r := range m.Requests() {
		if r.Kind == kind {
			times = append(times, r.Time)
		}
	}
	if len(times) < 2 {
		m.Fatalf("%d requests", len(times))
	}
	if pause := times[1].Sub(times[0]); pause < least || pause > most {
		m.Errorf("a pause of %s, want %s to %s", pause, least, most)
	}
}
