// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

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
