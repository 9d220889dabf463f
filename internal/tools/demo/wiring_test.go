// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

const exchange = "called the agent service" // in the log

// What only main passes to the provider reaches it: the environment, the version, the levels of the log, and what it knows
// of the CLI. A job of another state is none of the plans', so each of them would send.
//
// Red without: what TakeEnvironment returns for all that it leaves; the address in plugin.Serve; version in main; Command and
// State in cli.This.
func TestAccWiring(t *testing.T) {
	t.Parallel()
	s := start(t, 0)
	common := s.env
	call := func(command string, env ...string) (warnings, exchanges int) {
		s.env = append(slices.Clip(common), env...)
		shown := s.call(append(strings.Fields(command), "-json")...)
		return strings.Count(shown, `"summary":"Journal on the runner's disk"`), strings.Count(shown, exchange)
	}
	job := func(prompt string) string {
		return setup(t) + "resource \"agent_job\" \"this\" {\n  name   = \"job\"\n  prompt = \"" + prompt + "\"\n}\n"
	}
	s.write("main.tf", job("write"))
	if warnings, exchanges := call("apply -auto-approve -state=other.tfstate", "CI=true"); warnings != 1 || exchanges > 0 {
		t.Errorf("an apply on a runner warns %d times, and logs %d exchanges", warnings, exchanges)
	}
	// OpenTofu names the version of Terraform that it is compatible with.
	agent, want := s.service.Requests()[0].Header.Get("User-Agent"), `^terraform-provider-agent/0\.999\.0 \(\+terraform \d+\.\d+\.\d+\)$`
	if !regexp.MustCompile(want).MatchString(agent) {
		t.Errorf("User-Agent %q, want %s", agent, want)
	}

	s.write("main.tf", job("write more"))
	for _, variable := range tfcli.RunnerVariables() {
		if warnings, _ := call("plan", variable+"=1"); warnings != 1 {
			t.Errorf("with %s, a plan warns %d times that the journal goes with the runner", variable, warnings)
		}
	}
	if warnings, exchanges := call("plan -state=other.tfstate", "CI=false", "TF_LOG_PROVIDER=debug"); warnings > 0 || exchanges == 0 {
		t.Errorf("a plan elsewhere warns %d times, and its log has %d exchanges", warnings, exchanges)
	}
	if _, exchanges := call("plan -state=other.tfstate", "TF_LOG_PROVIDER=debug", "TF_LOG_PROVIDER_AGENT=error"); exchanges > 0 {
		t.Errorf("the log has %d exchanges, although only errors of this provider were asked for", exchanges)
	}
}
