// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

func connectionRows() []Row {
	var rows []Row
	// Red without: ErrCertificate in isPermanent (sent again until the deadline).
	for _, c := range []struct {
		name        string
		certificate faultserver.Certificate
		provider    attrs
		word, hint  string
	}{
		{"expired", faultserver.ExpiredCertificate, nil, "expired", "Check the clock of this machine"},
		{"untrusted", faultserver.GoodCertificate, attrs{"ca_certificates_pem": nil}, "unknown authority", "ca_certificates_pem"},
		{"for_another_name", faultserver.WrongNameCertificate, nil, "127.0.0.1", "the certificate is for another host name"},
	} {
		rows = append(rows, Row{
			name: "C02_certificate_" + c.name, Provider: c.provider, Serve: faultserver.Options{Certificate: c.certificate},
			Test: func(m *Matrix) {
				m.notSent(m.Run(fakecli.With(Job1(), attrs{"timeouts": attrs{"create": "1m"}})), "The server's certificate could not be verified", c.word, c.hint)
				m.wantDials(1)
			},
		})
	}
	// Red without: HTTP/1.1 alone for POSTs in newTransports.
	for name, fault := range map[string]faultserver.StreamFault{
		"goaway": faultserver.GoAway, "goaway_protocol_error": faultserver.GoAwayProtocolError,
		"refused_stream": faultserver.RefuseStream, "protocol_error": faultserver.ProtocolErrorStream,
	} {
		rows = append(rows, Row{
			name:  "C11_http2_" + name,
			Serve: faultserver.Options{Certificate: faultserver.GoodCertificate, HTTP2: []faultserver.StreamFault{fault}},
			Test: func(m *Matrix) {
				m.OK(m.Run(Job1()))
				m.wantEnd("completed", 1, 0)
				for _, r := range m.Requests() {
					if want := map[faultserver.Kind]string{faultserver.Create: "HTTP/1.1", faultserver.Get: "HTTP/2.0"}[r.Kind]; r.Proto != want {
						m.Errorf("%s came by %s, want %s", r.Kind, r.Proto, want)
					}
				}
			},
		})
	}
	// A server that keeps no connection and says nothing of it: a POST on a used
	// one is read and not answered. Red without: DisableKeepAlives for POSTs.
	return append(rows, Row{name: "C12_idle_connection_closed", clock: true, Test: func(m *Matrix) {
		freshOnly := func(x *faultserver.Exchange) {
			if x.Reused {
				faultserver.EOF(x)
				return
			}
			faultserver.Healthy(x)
		}
		m.Always(faultserver.Create, freshOnly)
		m.Always(faultserver.Message, freshOnly)
		m.Always(faultserver.Get, faultserver.Last(faultserver.Healthy))
		m.created(Job1())
		for i, prompt := range []string{"Add a tutorial", "Add a glossary"} {
			m.wantDiags(m.Run(attrs{"prompt": prompt}), messagePlanned)
			m.wantEnd("completed", 1, i+1)
		}
		m.wantPrompts(3)
	}})
}

// redirectRows show that the key and the prompt go to base_url alone. Red
// without: RoundTrip in Client.exchange (an http.Client follows), and without
// 3xx as a refusal in classifyPost and classifyGet.
func redirectRows() []Row {
	var rows []Row
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, c := range []struct {
			name  string
			serve faultserver.Options // what redirects
			other *faultserver.Options
		}{
			{"to_same_host", faultserver.Options{}, nil},
			{"to_other_host", faultserver.Options{}, new(faultserver.Options)},
			{"from_https_to_http", faultserver.Options{Certificate: faultserver.GoodCertificate}, new(faultserver.Options)},
		} {
			rows = append(rows, Row{name: fmt.Sprintf("C10_%d_%s", status, c.name), Serve: c.serve, Test: func(m *Matrix) {
				target, other := m.Server, (*faultserver.Server)(nil)
				if c.other != nil {
					other = faultserver.New(m, m.Sim, *c.other)
					target = other
				}
				location := target.URL + "/v2/agent/proj_1/elsewhere/job"
				m.Script(faultserver.Create, faultserver.Answer(status, "", "Location: "+location))
				m.refused(m.Run(Job1()), fmt.Sprintf("The service responded with %d", status), location, "Redirects are not followed")
				if n := len(m.Requests()); n != 1 {
					m.Errorf("%d requests, want 1", n)
				}
				m.untouched(other)
				m.created(Job1())
				m.WantPosts(2, 0)
			}})
		}
		rows = append(rows, Row{name: fmt.Sprintf("C10_%d_of_a_get", status), Test: func(m *Matrix) {
			m.created(Job1())
			other := faultserver.New(m, m.Sim, faultserver.Options{})
			m.Script(faultserver.Get, faultserver.Answer(status, "", "Location: "+other.URL))
			m.unchanged(func() { m.wantDiags(m.refresh(), readFailed) })
			m.wantWords("Redirects are not followed", "The state keeps it as last read")
			m.untouched(other)
		}})
	}
	return rows
}

// untouched asserts that nobody has spoken to a server.
func (m *Matrix) untouched(other *faultserver.Server) {
	m.Helper()
	if other != nil && (other.Dials() != 0 || other.Received() != 0) {
		m.Errorf("the other side got %d connections and %d bytes", other.Dials(), other.Received())
	}
}

// proxyRows run in a process of their own: net/http reads the environment's
// proxy once, and never uses it for a loopback address.
func proxyRows() []Row {
	const inner = "PROXY_ROW"
	// Red without: proxyRefusal, or proxyError in isPermanent (sent again until the deadline).
	return []Row{{name: "C14_proxy_answers_407", Provider: attrs{"base_url": "https://agent.invalid"}, Test: func(m *Matrix) {
		if os.Getenv(inner) != "" {
			m.notSent(m.Run(fakecli.With(Job1(), attrs{"timeouts": attrs{"create": "1m"}})), "The proxy refused the connection with 407 Proxy Authentication Required", "Check HTTPS_PROXY and NO_PROXY")
			return
		}
		proxy := faultserver.New(m, m.Sim, faultserver.Options{})
		var connects []string
		proxy.Always(faultserver.Other, func(x *faultserver.Exchange) {
			connects = append(connects, x.Request.Method+" "+x.Request.Host+" "+x.Request.Header.Get("Authorization"))
			faultserver.Answer(407, "<p>Who are you?", "Content-Type: text/html", `Proxy-Authenticate: Basic realm="office"`)(x)
		})
		command := exec.CommandContext(m.Context(), os.Args[0], "-test.run=^TestMatrix$/^C14_", "-test.count=1")
		command.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
			return strings.HasPrefix(strings.ToUpper(variable), "NO_PROXY=")
		}), inner+"=1", "HTTPS_PROXY="+proxy.URL, "https_proxy="+proxy.URL)
		output, err := command.CombinedOutput()
		if err != nil {
			m.Errorf("%v\n%s", err, output)
		}
		if strings.Contains(string(output), harness.CanaryKey) {
			m.Error("the key is in the output")
		}
		if !slices.Equal(connects, []string{"CONNECT agent.invalid:443 "}) {
			m.Errorf("the proxy was asked for %q", connects)
		}
		m.WantPosts(0, 0)
	}}}
}

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
			m.wantWords("The service's rate limit refused the request to project proj_1, so no job was started.", "429 Too Many Requests",
				"the pause for the service's rate limit exceeds the configured timeout: the next request can be sent in 1h0m0s.", "raise timeouts")
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
