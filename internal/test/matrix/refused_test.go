// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// refusedRows are creates that the client or the service refuses.
func refusedRows() []Row {
	tls := faultserver.Options{TLS: true}
	return []Row{
		// Red without: ErrCertificate in post (sent again until the deadline).
		{name: "C02_certificate_untrusted", Provider: attrs{"ca_certificates_pem": nil}, Serve: tls, Test: func(m *Matrix) {
			m.notSent(m.Run(fakecli.With(Job1(), attrs{"timeouts": attrs{"create": "1m"}})),
				"The server's certificate could not be verified", "unknown authority", "ca_certificates_pem")
			m.wantDials(1)
		}},
		// Red without: 4xx as a final refusal in classifyPost; the words, without message of a response; the URL, without Request in reason.
		{name: "C08_402", Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Answer(402, `{"title":"Bad","detail":"no such thing"}`, "Content-Type: application/problem+json"))
			m.refused(m.Run(Job1()), "The service responded with 402", `error message "no such thing"`, "(POST "+m.URL+"/v2/agent/proj_1/job)",
				"Check credits and plan in the service's dashboard.\n\nOnce that is fixed, apply again")
		}},
		// The key and the prompt go to base_url alone. Red without: RoundTrip in Client.exchange (an http.Client
		// follows), and without 3xx as a refusal in classifyPost and classifyGet.
		{name: "C10_302_from_https_to_http", Serve: tls, Test: func(m *Matrix) {
			other := faultserver.New(m, m.Sim, faultserver.Options{})
			location := other.URL + "/v2/agent/proj_1/elsewhere/job"
			redirect := faultserver.Answer(302, "", "Location: "+location)
			m.Script(faultserver.Create, redirect)
			m.refused(m.Run(Job1()), "The service responded with 302", location, "Redirects are not followed")
			m.created(Job1())
			m.WantPosts(2, 0)

			m.Script(faultserver.Get, redirect) // read again: see P07
			m.OK(m.refresh())
			if n := other.Dials(); n != 0 {
				m.Errorf("%d connections to the other host", n)
			}
		}},
		// Red without: ErrPauseTooLong in limiter.limited (the row would wait for its timeout).
		{name: "C09_beyond_the_deadline", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Answer(429, `{"error":"slow down"}`, "Retry-After: 3600"))
			start := time.Now()
			m.wantDiags(m.Run(fakecli.With(Job1(), attrs{"timeouts": attrs{"create": "10m"}})), createFailed)
			m.wantTook(start, 0, time.Second)
			m.wantWords("429 Too Many Requests", "The service's rate limit refused the prompt for project proj_1, so no job was started.", "raise timeouts",
				"the pause for the service's rate limit exceeds the remaining time: the next request can be sent in 1h0m0s.")
			m.wantEnd("", 1, 0)
			m.OK(m.connect())
			m.OK(m.Run(Job1()))
			m.WantPosts(2, 0)
		}},
	}
}

// refused asserts that a create failed because the service refused its one POST.
func (m *Matrix) refused(diags []*tfprotov6.Diagnostic, words ...string) {
	m.Helper()
	m.wantDiags(diags, createFailed)
	m.wantWords(append(words, "The service refused the prompt for project proj_1, so no job was started.")...)
	m.wantEnd("", 1, 0)
	if jobs := m.Sim.Jobs(); len(jobs) != 0 {
		m.Errorf("the service has %d jobs", len(jobs))
	}
}

// notSent asserts that a create failed and that nothing reached the service.
func (m *Matrix) notSent(diags []*tfprotov6.Diagnostic, words ...string) {
	m.Helper()
	m.wantDiags(diags, createFailed)
	m.wantWords(append(words, "The prompt was not sent to project proj_1, so no job was started.", "Apply again to send the prompt.")...)
	m.wantEnd("", 0, 0)
}
