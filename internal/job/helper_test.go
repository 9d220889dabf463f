// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

type (
	attrs   = fakecli.Attrs
	unknown = fakecli.Unknown
)

// stateName follows the folder of a journal: local states may share one.
const stateName = "?state=a"

// startRun starts a provider process of another run of the CLI.
func startRun(c *fakecli.CLI, run cli.Run, config attrs) *cli.Process {
	c.T.Helper()
	process := harness.Process(run)
	c.ConnectTo(c.T.Context(), provider.New("test", provider.Options{Process: process}), config)
	c.Load(c.T.Context(), c.Instance)
	return process
}

// apply is a run of the CLI: a plan and its apply, each in a process that is shut down.
func apply(t *testing.T, c *fakecli.CLI, run cli.Run, config, job attrs) []*tfprotov6.Diagnostic {
	t.Helper()
	planning := startRun(c, run, config)
	diags := append(c.Refresh(t.Context()), c.Plan(t.Context(), job)...)
	planning.Drain(t.Context())
	if fakecli.Failed(diags) {
		return diags
	}
	defer startRun(c, run, config).Drain(t.Context())
	return append(diags, c.Apply(t.Context(), job)...)
}

// byPrompt lets a job go as its prompt says.
func byPrompt(prompt string, _ int) simulator.Script {
	switch {
	case strings.Contains(prompt, "fail"):
		return simulator.Script{Duration: 100 * time.Millisecond, Status: "failed"}
	case strings.Contains(prompt, "once"):
		return simulator.Script{Duration: time.Second, NoMessages: 409}
	case strings.Contains(prompt, "sole"):
		return simulator.Script{Duration: time.Second, NoMessages: 400}
	case strings.Contains(prompt, "slow"):
		return simulator.Script{Duration: time.Hour}
	case strings.Contains(prompt, "no status"):
		return simulator.Script{Duration: time.Second, Extra: attrs{"status": simulator.Omit{}}}
	case strings.Contains(prompt, "odd link"):
		return simulator.Script{Duration: time.Second, Extra: attrs{"prLink": "/pull/1"}}
	default:
		return simulator.Script{Duration: time.Second}
	}
}

// ended is a job that somebody else has started and that is over.
func ended(s *harness.Service) string {
	id := s.Create(harness.Project, "from elsewhere").ID
	s.SetStatus(id, "completed")
	return id
}
