// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"fmt"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

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
				m.refused(m.Run(Job1()), fmt.Sprintf("The service answered %d", status), location, "Redirects are not followed")
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
			m.wantWords("Redirects are not followed", "The state keeps it as it was last seen")
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
