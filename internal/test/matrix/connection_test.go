// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
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
