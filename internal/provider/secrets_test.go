// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// A service that puts the key into its records does not get it into the state.
// Red without: scrub in judgePost and judgeGet.
func TestEchoedKeyStaysOutOfTheState(t *testing.T) {
	for _, wait := range []bool{true, false} {
		s := newService(t, always(simulator.Script{Extra: map[string]any{
			"model": "model of " + canaryKey, "prLink": "https://git.example.com/pull/1?by=" + canaryKey,
		}}))
		c := newCore(t, s.Attrs())
		diags := c.Run(t.Context(), attrs{"prompt": "write", "wait": attrs{"enabled": wait}})
		if failed(diags) || c.Get("model") != "model of (sensitive)" {
			t.Errorf("waiting %t: model %v, %s", wait, c.Get("model"), text(diags))
		}
		if strings.Contains(c.State.String()+text(diags), canaryKey) {
			t.Errorf("waiting %t: the key is in the state or the output", wait)
		}
	}
}
