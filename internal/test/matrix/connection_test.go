// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"fmt"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

func connectionRows() []Row {
	var rows []Row
	// Red without: ErrCertificate in post (sent again until the deadline).
	for _, c := range []struct {
		name        string
		certificate faultserver.Certificate
		provider    attrs
		word        string
	}{
		{"C02_certificate_expired", faultserver.ExpiredCertificate, nil, "expired"},
		{"C02_certificate_untrusted", faultserver.GoodCertificate, attrs{"ca_certificates_pem": nil}, "unknown authority"},
		{"C02_certificate_for_another_name", faultserver.WrongNameCertificate, nil, "127.0.0.1"},
	} {
		rows = append(rows, Row{
			name: c.name, Provider: c.provider, Serve: faultserver.Options{Certificate: c.certificate},
			Test: func(m *Matrix) {
				m.notSent(m.Run(fakecli.With(Job1(), attrs{"timeouts": attrs{"create": "1m"}})), "The server's certificate could not be verified", c.word, "ca_certificates_pem")
				m.wantDials(1)
			},
		})
	}
	return rows
}

// redirectRows show that the key and the prompt go to base_url alone. Red
// without: RoundTrip in Client.exchange (an http.Client follows), and without
// 3xx as a refusal in classifyPost and classifyGet.
func redirectRows() []Row {
	var rows []Row
	for _, c := range []struct {
		name   string
		status int
		serve  faultserver.Options // what redirects
	}{
		{"C10_307_to_other_host", 307, faultserver.Options{}},
		{"C10_302_from_https_to_http", 302, faultserver.Options{Certificate: faultserver.GoodCertificate}},
	} {
		rows = append(rows, Row{name: c.name, Serve: c.serve, Test: func(m *Matrix) {
			other := faultserver.New(m, m.Sim, faultserver.Options{})
			location := other.URL + "/v2/agent/proj_1/elsewhere/job"
			m.Script(faultserver.Create, faultserver.Answer(c.status, "", "Location: "+location))
			m.refused(m.Run(Job1()), fmt.Sprintf("The service responded with %d", c.status), location, "Redirects are not followed")
			if n := len(m.Requests()) + other.Dials(); n != 1 {
				m.Errorf("%d requests, want 1", n)
			}
			m.created(Job1())
			m.WantPosts(2, 0)

			m.Script(faultserver.Get, faultserver.Answer(c.status, "", "Location: "+location))
			m.unchanged(func() { m.wantDiags(m.refresh(), readFailed) })
			m.wantWords("Redirects are not followed", "The state keeps it as last read")
			if n := other.Dials(); n != 0 {
				m.Errorf("%d connections to the other host", n)
			}
		}})
	}
	return rows
}

// limitRows are POSTs that the service's rate limit refuses.
func limitRows() []Row {
	var rows []Row
	for _, c := range []struct {
		name   string
		header func(time.Time) []string
	}{
		// Red without: the branch for 429 in Client.post, and retryAfter.
		{"C09_seconds", Header("Retry-After: 45")},
		// Red without: the answer's Date header in retryAfter.
		{"P12_retry_after_date_clock_behind", Dates(45*time.Second, -time.Hour, true)},
	} {
		rows = append(rows, Row{name: c.name, clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, Limited(c.header))
			start := time.Now()
			m.OK(m.Run(Job1()))
			m.wantTook(start, 64*time.Second, 70*time.Second) // the pause and the job's 20 s
			m.wantEnd("completed", 2, 0)
			m.wantPrompts(1)
		}})
	}
	return append(rows,
		// Red without: ErrPauseTooLong in limiter.limited (the row would wait for its timeout).
		Row{name: "C09_beyond_the_deadline", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, Limited(Header("Retry-After: 3600")))
			start := time.Now()
			m.wantDiags(m.Run(fakecli.With(Job1(), attrs{"timeouts": attrs{"create": "10m"}})), createFailed)
			m.wantTook(start, 0, time.Second)
			m.wantWords("The service's rate limit refused the prompt for project proj_1, so no job was started.", "429 Too Many Requests",
				"the pause for the service's rate limit exceeds the configured timeout: the next request can be sent in 1h0m0s.", "raise timeouts")
			m.wantEnd("", 1, 0) // the one that was answered 429
			m.OK(m.connect())
			m.OK(m.Run(Job1()))
			m.WantPosts(2, 0)
		}},
		// Red without: the context in the limiter's wait.
		Row{name: "X03_interrupt_in_a_pause", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, Limited(Header("Retry-After: 600")))
			time.AfterFunc(time.Minute, m.cli.Stop)
			start := time.Now()
			m.wantDiags(m.Run(Job1()), createFailed)
			m.wantWords("rate limit refused")
			m.wantTook(start, time.Minute, time.Minute)
			m.wantEnd("", 1, 0)
			m.OK(m.connect())
			m.OK(m.Run(Job1()))
			m.WantPosts(2, 0)
		}},
	)
}
