// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
	"github.com/agentjobs/terraform-provider-agent/internal/test/matrix"
)

// rowID is a row of the matrix. The tests that are counted for the matrix's
// coverage name theirs in full; the mix is no substitute for one of them.
func rowID(family byte, n int) string { return fmt.Sprintf("%c%02d", family, n) }

// apartRows cannot be part of the mix, for this reason, and are repeated on their own.
var apartRows = map[string]string{
	rowID('C', 11): "apart: HTTP/2 needs a connection that buffers, which a pipe in memory does not",
	rowID('C', 14): "apart: net/http reads the environment's proxy once for the whole process",
}

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
			sum.fault(rowID('C', 11))
			sum.number("jobs asked for", 1)
			sum.number("jobs started", 1)
			sum.number("messages asked for", 1)
			sum.number("messages delivered", 1)
		}
	})
}

// throughProxy lets another process try to create jobs through a proxy that
// refuses: net/http never uses one for a loopback address, nor a second one.
func throughProxy(t *testing.T, times int, sum *tally) {
	t.Helper()
	t.Run("through a proxy", func(t *testing.T) {
		proxy := faultserver.New(t, nil, faultserver.Options{})
		proxy.Always(faultserver.Other, faultserver.Last(faultserver.Answer(407, "<p>Who are you?", "Content-Type: text/html", `Proxy-Authenticate: Basic realm="office"`)))
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChaosFaults$", "-test.count=1")
		command.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
			return strings.HasPrefix(strings.ToUpper(variable), "NO_PROXY=")
		}), fmt.Sprintf("CHAOS_PROXIED=%d", times), "HTTPS_PROXY="+proxy.URL, "https_proxy="+proxy.URL)
		output, err := command.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, output)
		}
		if n := strings.Count(string(output), harness.CanaryKey); n > 0 {
			sum.wrong(keyBytes, n)
		}
		if got := len(proxy.Requests()); got != times {
			t.Errorf("the proxy was asked %d times for %d jobs", got, times)
		}
		for range proxy.Requests() {
			sum.fault(rowID('C', 14))
		}
	})
}

// proxied is throughProxy's other process.
func proxied(t *testing.T, times int) {
	t.Helper()
	for range times {
		matrix.Row{Provider: attrs{"base_url": "https://agent.invalid"}, Test: func(m *matrix.Matrix) {
			m.NotSent(m.Run(matrix.Job1()), "The proxy refused the connection with 407 Proxy Authentication Required")
		}}.Run(t, t.TempDir())
	}
}
