// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// Red without: recovered in Create and Update.
func TestX06_panic_after_an_accepted_POST(t *testing.T) {
	s := newService(t, always(simulator.Script{Duration: 100 * time.Millisecond}))
	c := newCore(t, s.attrs())
	c.connectTo(t.Context(), provider.NewPanicking("with "+canaryKey), s.attrs())

	created := text(c.run(t.Context(), attrs{"prompt": "write"}))
	contains(t, created, "WARNING: Bug in the agent provider", s.onlyJob(t).ID)
	if c.tainted || c.get("id") != s.onlyJob(t).ID || c.get("status") != "active" {
		t.Errorf("the job was not kept: %s", c.state)
	}
	s.sent(t, 1, 0)

	c.connect(s.attrs()) // the next run, mended
	c.run(t.Context(), attrs{"prompt": "write"})
	c.connectTo(t.Context(), provider.NewPanicking("with "+canaryKey), s.attrs())
	updated := text(c.run(t.Context(), attrs{"prompt": "write more"}))
	contains(t, updated, "ERROR: Bug in the agent provider", s.onlyJob(t).ID)
	if c.get("prompt") != "write more" {
		t.Errorf("the message that was taken is not in the state: %s", c.state)
	}
	c.connect(s.attrs())
	c.run(t.Context(), attrs{"prompt": "write more"})
	s.sent(t, 1, 1)
	if c.get("status") != "completed" {
		t.Errorf("state in the end: %s", c.state)
	}
	if strings.Contains(created+updated, canaryKey) {
		t.Error("the key is in the output")
	}
}
