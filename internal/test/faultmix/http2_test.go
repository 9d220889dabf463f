// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/matrix"
)

// rowID is a row of the matrix. The tests that are counted for the matrix's
// coverage name theirs in full; the mix is no substitute for one of them.
func rowID(family byte, n int) string { return fmt.Sprintf("%c%02d", family, n) }

// http2Row cannot be part of the mix, and is repeated on sockets: HTTP/2 needs a
// connection that buffers, which a pipe in memory does not.
var http2Row = rowID('C', 11)

// overHTTP2 plays jobs and messages whose polls meet the faults of HTTP/2, on sockets.
func overHTTP2(t *testing.T, times int, random *rand.Rand, sum *tally) {
	t.Helper()
	faults := []faultserver.StreamFault{
		faultserver.GoAway, faultserver.GoAwayProtocolError, faultserver.RefuseStream, faultserver.ProtocolErrorStream,
	}
	t.Run("over HTTP2", func(t *testing.T) {
		for range times {
			script := make([]faultserver.StreamFault, 1+random.IntN(6))
			for i := range script {
				if i == 0 || random.IntN(2) == 0 {
					script[i] = faults[random.IntN(len(faults))]
				}
			}
			matrix.Row{Serve: faultserver.Options{Certificate: faultserver.GoodCertificate, HTTP2: script}, Test: func(m *matrix.Matrix) {
				m.OK(m.Run(matrix.Job1()))
				m.WantState("completed")
				m.WantPosts(1, 0)
				if diags := m.Run(matrix.Job2()); fakecli.Failed(diags) {
					m.Error(fakecli.Text(diags))
				}
				m.WantPosts(1, 1)
				if len(m.Sim.Jobs()) != 1 || len(m.Sim.Jobs()[0].Prompts) != 2 {
					sum.wrong(duplicates, 1)
					m.Errorf("jobs: %+v", m.Sim.Jobs())
				}
			}}.Run(t, t.TempDir())
			sum.fault(http2Row)
			sum.number("jobs asked for", 1)
			sum.number("jobs started", 1)
			sum.number("messages asked for", 1)
			sum.number("messages delivered", 1)
		}
	})
}
