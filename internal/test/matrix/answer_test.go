// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"fmt"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// answerRows are answers to a create that refuse it, or whose body is too large or too slow.
func answerRows() []Row {
	const limit = 1 << 20
	const says = `error message "no such thing"`
	var rows []Row
	// Red without: 4xx as a final refusal in classifyPost; the words, without serviceMessage; the URL, without Request in reason.
	for _, c := range []struct {
		status                       int
		name, body, kind, word, hint string
	}{
		{401, "C08_401_json", `{"error":"no such thing"}`, "application/json", says, "Check admin_key"},
		{402, "C08_402_json", `{"error":"no such thing"}`, "application/json", says, "Check credits and plan in the service's dashboard.\n\nOnce that is fixed, apply again"},
		{422, "C08_422_problem", `{"type":"about:blank","title":"Bad","detail":"no such thing"}`, "application/problem+json", says, ""},
		{404, "C08_404_html", "<!doctype html><p>no such thing", "text/html", "the response is a web page", "Check base_url"},
		{413, "C08_413_nothing", "", "application/json", "", ""},
	} {
		rows = append(rows, Row{name: c.name, Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Answer(c.status, c.body, "Content-Type: "+c.kind))
			m.refused(m.Run(Job1()), c.word, c.hint, fmt.Sprintf("The service responded with %d", c.status), "(POST "+m.URL+"/v2/agent/proj_1/job)")
		}})
	}
	// On pipes, which hold nothing back: what the server could send is what the client has read.
	for _, c := range []struct {
		name, word string
		play       faultserver.Play
		took       time.Duration
	}{
		// Red without: the LimitReader in Client.exchange.
		{"C13_10_MB_answer", "larger than 1 MiB", faultserver.Oversize(201, 10_000_000), 0},
		// Red without: the LimitReader behind the decompression in Client.exchange.
		{"C13_gzip_bomb", "larger than 1 MiB", faultserver.GzipBomb(201, 16*limit), 0},
		// Red without: the request timeout covering the body (the row would end after the whole answer).
		{"C13_slow_loris", "o complete response within the request timeout", faultserver.Slow(201, JobJSON(nil), 9*time.Second), time.Minute},
		// Red without: the request timeout in Client.exchange (the row would hang in the bubble).
		{"C03_header_timeout", "No complete response within the request timeout", faultserver.Stall, time.Minute},
	} {
		rows = append(rows, Row{name: c.name, clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, c.play)
			start := time.Now()
			diags := m.Run(Job1())
			m.wantTook(start, c.took, c.took)
			if sent := m.Sent(); sent > limit+64<<10 {
				m.Errorf("%d bytes were read", sent)
			}
			m.unknownOutcome(diags, 1, c.word)
		}})
	}
	return rows
}
