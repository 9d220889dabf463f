// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// limitRows are POSTs that the service's rate limit refuses.
func limitRows() []Row {
	var rows []Row
	// Red without: the branch for 429 in Client.post (F); each pause without its case in retryAfter.
	for _, c := range []struct {
		name        string
		header      func(time.Time) []string
		least, most time.Duration // between the refused POST and the next
	}{
		{"C09_without_retry_after", Header(), 5 * time.Second, 10 * time.Second},
		{"C09_seconds", Header("Retry-After: 40"), 40 * time.Second, 41 * time.Second},
		{"C09_zero_seconds", Header("Retry-After: 0"), 0, time.Second},
		{"C09_date", Dates(45*time.Second, 0, true), 44 * time.Second, 46 * time.Second},
		{"C09_date_without_date_header", Dates(45*time.Second, 0, false), 44 * time.Second, 46 * time.Second},
		{"C09_date_past", Dates(-time.Hour, 0, true), 0, time.Second},
		{"C09_negative", Header("Retry-After: -5"), 5 * time.Second, 10 * time.Second},
		{"C09_garbage", Header("Retry-After: soon"), 5 * time.Second, 10 * time.Second},
		// Red without: the answer's Date header in retryAfter.
		{"P12_retry_after_date_clock_ahead", Dates(45*time.Second, time.Hour, true), 44 * time.Second, 46 * time.Second},
		{"P12_retry_after_date_clock_behind", Dates(45*time.Second, -time.Hour, true), 44 * time.Second, 46 * time.Second},
	} {
		rows = append(rows, Row{name: c.name, clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, Limited(c.header))
			m.OK(m.Run(Job1()))
			m.wantEnd("completed", 2, 0)
			m.wantPrompts(1)
			m.wantPause(faultserver.Create, c.least, c.most)
		}})
	}
	return append(rows,
		Row{name: "C09_message", clock: true, Test: func(m *Matrix) {
			m.created(Job1())
			m.Script(faultserver.Message, Limited(Header("Retry-After: 30")))
			m.wantDiags(m.Run(Job2()), messagePlanned)
			m.wantEnd("completed", 1, 2)
			m.wantPause(faultserver.Message, 30*time.Second, 31*time.Second)
			m.wantPrompts(2)
		}},
		// Red without: ErrPauseTooLong in limiter.limited (the row would wait for its timeout).
		Row{name: "C09_beyond_the_deadline", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, Limited(Header("Retry-After: 3600")))
			start := time.Now()
			m.wantDiags(m.Run(fakecli.With(Job1(), attrs{"timeouts": attrs{"create": "10m"}})), createFailed)
			m.wantTook(start, 0, time.Second)
			m.wantWords("Nothing was sent to project proj_1, so no job was started.",
				"The rate limit lasts longer than the time that is left: the next request may go out in 1h0m0s.", "raise timeouts")
			m.wantEnd("", 1, 0) // the one that was answered 429
			m.OK(m.connect())
			m.OK(m.Run(Job1()))
			m.WantPosts(2, 0)
		}},
	)
}

// wantPause asserts the time between the first two requests of a kind.
func (m *Matrix) wantPause(kind faultserver.Kind, least, most time.Duration) {
	m.Helper()
	times := m.times(func(r faultserver.Request) bool { return r.Kind == kind })
	if len(times) < 2 {
		m.Fatalf("%d requests", len(times))
	}
	if pause := times[1].Sub(times[0]); pause < least || pause > most {
		m.Errorf("a pause of %s, want %s to %s", pause, least, most)
	}
}

// times are the times of the requests that match.
func (m *Matrix) times(match func(faultserver.Request) bool) (times []time.Time) {
	for _, r := range m.Requests() {
		if match(r) {
			times = append(times, r.Time)
		}
	}
	return times
}
