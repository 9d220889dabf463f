// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// A service that puts the key into its records does not get it into the state.
// Red without: scrub in classifyPost and classifyGet.
func TestEchoedKeyStaysOutOfTheState(t *testing.T) {
	for _, wait := range []bool{true, false} {
		s := harness.NewService(t, harness.Always(simulator.Script{Extra: map[string]any{
			"model": "model of " + harness.CanaryKey, "prLink": "https://git.example.com/pull/1?by=" + harness.CanaryKey,
		}}))
		c := fakecli.New(t, s.Attrs())
		diags := c.Run(t.Context(), attrs{"prompt": "write", "wait": attrs{"enabled": wait}})
		if fakecli.Failed(diags) || c.Get("model") != "model of (sensitive)" {
			t.Errorf("waiting %t: model %v, %s", wait, c.Get("model"), fakecli.Text(diags))
		}
		if strings.Contains(c.State.String()+fakecli.Text(diags), harness.CanaryKey) {
			t.Errorf("waiting %t: the key is in the state or the output", wait)
		}
	}
}
