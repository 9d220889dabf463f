// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"context"
	"errors"
	"maps"
	"net"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// createRows are faults of the connection to the service, and of its response to a create.
func createRows() []Row {
	tls := faultserver.Options{TLS: true}
	return []Row{
		// Red without: the fields of the log, and Printable in it.
		{name: "C01_logged", clock: true, Test: func(m *Matrix) {
			failure := errors.New("no\x1b[2J route")
			m.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				if err := failure; err != nil {
					failure = nil
					return nil, err
				}
				return m.Dial(ctx, network, address)
			}
			m.OK(m.connect())
			m.OK(m.Run(noWait()))
			entries, err := tflogtest.MultilineJSONDecode(strings.NewReader(m.logged()))
			if err != nil {
				m.Fatal(err)
			}
			var got []attrs
			for _, e := range entries {
				if e["@message"] == "called the agent service" {
					maps.DeleteFunc(e, func(name string, _ any) bool { return name[0] == '@' || strings.HasPrefix(name, "tf_") })
					got = append(got, e)
				}
			}
			post := attrs{"operation": "create job", "method": "POST", "url": m.URL + "/v2/agent/proj_1/job", "request_bytes": 29.0, "duration_ms": 0.0}
			want := []attrs{
				fakecli.With(post, attrs{"status": 0.0, "response_bytes": 0.0, "error": `no connection to the service: no\u001b[2J route`}),
				fakecli.With(post, attrs{"status": 201.0, "response_bytes": 225.0, "job_status": "active"}), // ids are of one length
			}
			if diff := cmp.Diff(want, got); diff != "" {
				m.Errorf("log (-want +got):\n%s", diff)
			}
		}},
		// Red without: ErrCertificate in post (sent again until the deadline).
		{name: "C02_certificate_untrusted", Provider: attrs{"ca_certificates_pem": nil}, Serve: tls, Test: func(m *Matrix) {
			m.wantDiags(m.Run(fakecli.With(Job1(), attrs{"timeouts": attrs{"create": "1m"}})), createFailed)
			m.wantWords("The server's certificate could not be verified", "unknown authority", "ca_certificates_pem")
			m.wantEnd("", 0, 0)
			m.wantDials(1)
		}},
		// The key and the prompt go to base_url alone. Red without: RoundTrip in Client.exchange (an http.Client
		// follows), and without 3xx as a refusal in classifyPost and classifyGet.
		{name: "C10_302_from_https_to_http", Serve: tls, Test: func(m *Matrix) {
			other := faultserver.New(m, m.Sim, faultserver.Options{})
			location := other.URL + "/v2/agent/proj_1/elsewhere/job"
			redirect := faultserver.Answer(302, "", "Location: "+location)
			m.Script(faultserver.Create, redirect)
			m.wantDiags(m.Run(Job1()), createFailed)
			m.wantWords("The service responded with 302", location, "Redirects are not followed")
			m.wantEnd("", 1, 0)
			m.created(Job1())
			m.WantPosts(2, 0)

			m.Script(faultserver.Get, redirect) // read again: see P07
			m.OK(m.refresh())
			if n := other.Dials(); n != 0 {
				m.Errorf("%d connections to the other host", n)
			}
		}},
		// Red without: the class "unknown outcome" for a POST without an answer (taken as not sent).
		{name: "C03_reset_after_effect", Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Effect(faultserver.Reset))
			m.wantDiags(m.Run(Job1()), outcomeUnknown)
			m.wantWords("No usable response", "import it and apply, which sends nothing: ", "terraform (or tofu) import ADDRESS proj_1/JOB_ID")
			m.wantEnd("", 1, 0)
			m.OK(m.Run(Job1()))
			m.wantEnd("completed", 2, 0)
		}},
		// Red without: the request timeout covering the body (the row would end after the whole answer).
		{name: "C13_slow_loris", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, faultserver.Slow(201, JobJSON(nil), 9*time.Second))
			start := time.Now()
			m.wantDiags(m.Run(Job1()), outcomeUnknown)
			m.wantTook(start, time.Minute, time.Minute)
		}},
	}
}
