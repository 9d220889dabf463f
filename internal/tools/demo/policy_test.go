// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/source"
)

const fleets = "guides/fleets/"

// The policy of the fleets guide, by the commands of the guide, which stop by themselves.
//
// Red without: && after opa.
func TestAccPolicy(t *testing.T) {
	t.Parallel()
	if cli.Path == "" {
		t.Skip("TF_ACC is not set: it takes a Terraform-compatible CLI")
	}
	if os.Getenv("EXPLORE") == "" {
		t.Skip("EXPLORE is not set: building Open Policy Agent takes a minute, so only .ci/run does it")
	}
	bin := t.TempDir()
	if _, err := source.Go(t.Context(), filepath.Join(root, "internal", "tools", "opa"), "build", "-o", bin, "github.com/open-policy-agent/opa"); err != nil {
		t.Fatal(err)
	}
	fleet := read(t, fleets+"main.tf")
	with := func(old, changed string) string {
		return setup(t) + "\n" + strings.Replace(fleet[strings.Index(fleet, "variable "):], old, changed, 1)
	}
	unknown := "resource \"terraform_data\" \"late\" {\n input = \"late\"\n}\n"
	for name, test := range map[string]struct {
		config, projects, want string
		least                  string // version of Terraform
	}{
		"allowed":         {fleet, `{"a": "proj_123", "b": "proj_456"}`, "", ""},
		"other project":   {fleet, `{"a": "proj_123", "b": "proj_789"}`, `agent_job.spelling[\"b\"]: the project proj_789 is not allowed.`, ""},
		"too many":        {fleet, `{"a": "proj_123"` + many(20) + `}`, "21 new jobs, and at most 20 are allowed.", ""},
		"unknown project": {with("each.value", "terraform_data.late.output") + unknown, `{"a": "proj_123"}`, `: the project null is not allowed.`, ""},
		"action": {
			setup(t) + read(t, actions+"agent_start_job/action.tf") + "variable \"projects\" {}\n", "{}",
			"action.agent_start_job.reference: the project null is not allowed.", "1.14.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, 0)
			if test.least != "" {
				needs(t, test.least, "-")
			}
			s.write("projects.tfvars", "projects = "+test.projects+"\n")
			s.write("main.tf", test.config)
			s.write("policy.rego", read(t, fleets+"policy.rego"))
			shown := s.shell("PATH='" + bin + "':$PATH\n{ " + read(t, fleets+"policy.sh") + "} || true")
			if test.want == "" {
				s.expect([]string{"Correct the spelling on all pages"}, []string{"proj_456: Correct the spelling on all pages"})
				return
			}
			if s.expect(); !strings.Contains(shown, test.want) {
				t.Errorf("want %q in:\n%s", test.want, shown)
			}
		})
	}
}

// many is more elements of a map of projects.
func many(count int) (elements string) {
	for i := range count {
		elements += `, "` + strings.Repeat("b", i+1) + `": "proj_123"`
	}
	return elements
}
