// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

func TestPlanSaysWhatItWillSend(t *testing.T) {
	s := newService(t, func(prompt string, _ int) simulator.Script {
		if strings.Contains(prompt, "fail") {
			return simulator.Script{Duration: 100 * time.Millisecond, Status: "failed"}
		}
		return simulator.Script{Duration: 100 * time.Millisecond}
	})
	c := newCore(t, s.attrs())
	ctx := t.Context()
	if diags := c.run(ctx, attrs{"prompt": "write"}); len(diags) > 0 {
		t.Fatal(text(diags))
	}
	id := c.get("id").(string)

	contains(t, text(c.plan(ctx, attrs{"prompt": "write more"})), "WARNING: New prompt is sent to the existing agent job", id)
	if diags := c.plan(ctx, attrs{"prompt": "write more", "triggers": attrs{"a": "1"}}); len(diags) > 0 || !c.replace {
		t.Errorf("a new job because of triggers: replaced %t, %s", c.replace, text(diags))
	}
	contains(t, text(c.run(ctx, attrs{"prompt": "now fail"})), "ERROR: Agent job failed", id, "change the prompt")
	if c.tainted {
		t.Error("a failed message tainted the job")
	}
	c.refresh(ctx)
	contains(t, text(c.plan(ctx, attrs{"prompt": "now fail"})), "WARNING: Agent job failed", "-replace=ADDRESS")
	if !c.empty() {
		t.Error("a plan after a failed message is not empty")
	}
	contains(t, text(c.plan(ctx, attrs{"prompt": "write again"})), "WARNING: New prompt starts a new agent job", id, "alone")
	if !c.replace {
		t.Error("a new prompt for a failed job does not replace it")
	}
	s.sent(t, 1, 1)
}
