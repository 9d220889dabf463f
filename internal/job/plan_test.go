// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

func TestPlanSaysWhatItWillSend(t *testing.T) {
	s := harness.NewService(t, func(prompt string, _ int) simulator.Script {
		if strings.Contains(prompt, "fail") {
			return simulator.Script{Duration: 100 * time.Millisecond, Status: "failed"}
		}
		return simulator.Script{Duration: 100 * time.Millisecond}
	})
	c := fakecli.New(t, s.Attrs())
	ctx := t.Context()
	if diags := c.Run(ctx, attrs{"prompt": "write"}); len(diags) > 0 {
		t.Fatal(fakecli.Text(diags))
	}
	id := c.Get("id").(string)

	harness.Contains(t, fakecli.Text(c.Plan(ctx, attrs{"prompt": "write more"})), "WARNING: New prompt is sent to the existing agent job", id)
	if diags := c.Plan(ctx, attrs{"prompt": "write more", "triggers": attrs{"a": "1"}}); len(diags) > 0 || !c.Replace {
		t.Errorf("a new job because of triggers: replaced %t, %s", c.Replace, fakecli.Text(diags))
	}
	harness.Contains(t, fakecli.Text(c.Run(ctx, attrs{"prompt": "now fail"})), "ERROR: Agent job failed", id, "change the prompt")
	if c.Tainted {
		t.Error("a failed message tainted the job")
	}
	c.Refresh(ctx)
	harness.Contains(t, fakecli.Text(c.Plan(ctx, attrs{"prompt": "now fail"})), "WARNING: Agent job failed", "-replace=ADDRESS")
	if !c.Empty() {
		t.Error("a plan after a failed message is not empty")
	}
	harness.Contains(t, fakecli.Text(c.Plan(ctx, attrs{"prompt": "write again"})), "WARNING: New prompt starts a new agent job", id, "alone")
	if !c.Replace {
		t.Error("a new prompt for a failed job does not replace it")
	}
	s.Sent(t, 1, 1)
}
