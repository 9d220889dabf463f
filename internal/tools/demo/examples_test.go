// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/source"
)

// example is a root module made of files of examples/. If they name job_456, there is a job already.
type example struct {
	files  []string
	before func(s *trial) // the apply
	then   func(s *trial) // between the apply and another one
	want   [][]string     // the prompts of all jobs in the end
}

const (
	jobs    = "resources/agent_job/"
	data    = "data-sources/agent_job/"
	actions = "actions/"
	lists   = "list-resources/agent_job/"
	fleets  = "guides/fleets/"
)

func examples() map[string]example {
	elsewhere := [][]string{{"from elsewhere"}}
	fromFile := [][]string{{"Bring the API reference up to date with openapi.json.\n\n" +
		"- Describe each parameter in one sentence.\n- Keep the order of the specification.\n"}}
	return map[string]example{
		"provider": {files: []string{"provider/provider.tf"}, want: [][]string{{first}}},
		"provider-arguments and resources": {
			files: []string{"provider/provider-arguments.tf", jobs + "resource.tf", jobs + "resource_options.tf", jobs + "resource_strict.tf"},
			want:  [][]string{{first}, {reference}, {"Write the release notes of the latest release"}},
		},
		"write-only prompt":   {files: []string{jobs + "resource_write_only.tf", jobs + "reference.md"}, want: fromFile},
		"import-by-string-id": {files: []string{jobs + "import-by-string-id.tf"}, want: elsewhere},
		"import-by-identity":  {files: []string{jobs + "import-by-identity.tf"}, want: elsewhere},
		"import": {
			files:  []string{jobs + "resource.tf", jobs + "import.sh"},
			before: func(s *trial) { s.call(strings.Fields(s.written("import.sh"))[1:]...) },
			want:   elsewhere,
		},
		"generated configuration": {files: []string{"guides/migrating/import.tf"}, before: generateConfig, want: elsewhere},
		"data source":             {files: []string{data + "data-source.tf"}, want: elsewhere},
		"list resource": {
			files: []string{lists + "list-resource.tfquery.hcl", jobs + "resource_write_only.tf", jobs + "reference.md"},
			then: func(s *trial) {
				if text := s.call("query"); !strings.Contains(text, s.service.Jobs()[0].ID+", started at ") || !strings.Contains(text, "may be in the state") {
					s.Error(text)
				}
			},
			want: fromFile,
		},
		"action agent_start_job, write-only prompt": {
			files: []string{actions + "agent_start_job/action_write_only.tf"},
			want:  [][]string{{"Add to the changelog: The beta of the Python SDK starts on Monday"}},
		},
		"action agent_start_job": {
			files: []string{actions + "agent_start_job/action.tf"},
			want:  [][]string{{reference + " with version 2.4.0"}},
		},
		"action agent_start_job, events": {
			files: []string{actions + "agent_start_job/action_events.tf"},
			then:  func(s *trial) { s.env = append(s.env, `TF_VAR_pages=["install"]`) },
			want:  [][]string{{"Remove all links to the page quickstart"}, {"Write the page install"}, {"Write the page quickstart"}},
		},
		"action agent_send_message": {
			files: []string{actions + "agent_send_message/action.tf", actions + "agent_send_message/invoke.sh"},
			then:  func(s *trial) { s.call(append(strings.Fields(s.written("invoke.sh"))[1:], "-auto-approve")...) },
			want:  [][]string{{"from elsewhere", "Make the introduction shorter"}},
		},
		"action agent_send_message, after a job": {
			files: []string{actions + "agent_send_message/action_after_job.tf"},
			want:  [][]string{{reference, "Run each example of the pull request, and correct those that fail"}},
		},
		"aliases": {
			files: []string{jobs + "resource.tf", recipes + "aliases.tf"},
			want:  [][]string{{first}, {"proj_456: Correct the spelling on all pages"}},
		},
		"fleet": {
			files: []string{fleets + "main.tf"},
			want:  [][]string{{"proj_1: Correct the spelling on all pages"}, {"proj_2: Correct the spelling on all pages"}},
		},
	}
}

// generateConfig adds the prompt that a generated configuration lacks: nobody but the user knows it.
func generateConfig(s *trial) {
	s.Helper()
	shown, ok := s.try("plan", "-generate-config-out=generated.tf")
	if ok || !strings.Contains(shown, "Exactly one of these attributes must be configured: [prompt,prompt_wo]") {
		s.Errorf("%t\n%s", ok, shown)
	}
	generated := s.written("generated.tf")
	if !strings.Contains(generated, "prompt     = null") {
		s.Fatal(generated)
	}
	s.write("generated.tf", strings.Replace(generated, "prompt     = null", `prompt = "Add a quickstart for the Python SDK"`, 1))
}

// setup is what configurations without required_providers lack.
func setup(t *testing.T) string {
	text, _, _ := strings.Cut(read(t, "provider/provider.tf"), "resource ")
	return text
}

// The examples of the documentation, each run as it is by a real CLI; only the
// id of a job that was there before is put in.
func TestAccExamples(t *testing.T) {
	t.Parallel()
	for name, test := range examples() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, 0)
			complete := false
			for _, file := range test.files {
				text := read(t, file)
				if strings.Contains(text, "job_456") {
					text = strings.ReplaceAll(text, "job_456", s.service.Create("proj_123", "from elsewhere").ID)
				}
				s.write(path.Base(file), text)
				complete = complete || strings.Contains(text, "required_providers")
			}
			if !complete {
				s.write("setup.tf", setup(t))
			}
			if test.before != nil {
				test.before(s)
			}
			if test.then != nil {
				s.call("apply", "-auto-approve")
				test.then(s)
			}
			s.apply()
			s.expect(test.want...)
			if slices.ContainsFunc(s.service.Jobs(), func(job simulator.Job) bool { return job.Status == "active" }) {
				t.Error("apply did not wait")
			}
		})
	}
}

// The policy of the fleets guide, by the commands of the guide, which stop by themselves.
//
// Red without: && after opa.
func TestAccPolicy(t *testing.T) {
	t.Parallel()
	start(t, 0) // skips without a CLI
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
	many := `{"a": "proj_123"`
	for i := range 20 {
		many += fmt.Sprintf(`, "b%d": "proj_123"`, i)
	}
	unknown := "resource \"terraform_data\" \"late\" {\n input = \"late\"\n}\n"
	for name, test := range map[string]struct {
		config, projects, want string
	}{
		"allowed":         {fleet, `{"a": "proj_123", "b": "proj_456"}`, ""},
		"other project":   {fleet, `{"a": "proj_123", "b": "proj_789"}`, `agent_job.spelling[\"b\"]: the project proj_789 is not allowed.`},
		"too many":        {fleet, many + "}", "21 new jobs, and at most 20 are allowed."},
		"unknown project": {with("each.value", "terraform_data.late.output") + unknown, `{"a": "proj_123"}`, `: the project null is not allowed.`},
		"action": {
			setup(t) + read(t, actions+"agent_start_job/action.tf") + "variable \"projects\" {}\n", "{}",
			"action.agent_start_job.reference: the project null is not allowed.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, 0)
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

// TestDemo is `make demo` with a shorter first job.
func TestDemo(t *testing.T) {
	t.Parallel()
	if !canInterrupt {
		t.Skip("nobody can press Ctrl-C here")
	}
	start(t, 0) // skips without a CLI
	if err := run(t.Context(), t.Output(), false, root+"/examples/demo/main.tf", time.Second); err != nil {
		t.Error(err)
	}
}

// Every configuration in examples/ is run by a test: those of modules by TestAccModule, which finds them itself, and those of
// pipelines and recipes by the tests beside this one. AWS is not at hand: make lint parses bucket/main.tf.
func TestEveryExampleIsRun(t *testing.T) {
	run := []string{"demo/main.tf", fleets + "policy.sh", oneApply, recipes + "module.tf", recipes + "notify.yml"}
	for _, test := range examples() {
		run = append(run, test.files...)
	}
	for _, name := range []string{
		"two-applies.tf", "two-applies.sh", "backend-http.tf", "github-actions.yml", "push.yml", "gitlab-ci.yml", "bucket/main.tf",
	} {
		run = append(run, pipelines+name)
	}
	for _, name := range []string{"schedule", "release", "merged", "openapi"} {
		run = append(run, recipes+name+".tf", recipes+name+".yml")
	}
	slices.Sort(run)
	there := slices.DeleteFunc(filesIn(t, root+"/examples", ".tf", ".tfquery.hcl", ".yml", ".yaml", ".md", ".sh"),
		func(file string) bool { return strings.HasPrefix(file, "modules/") })
	if diff := cmp.Diff(there, slices.Compact(run)); diff != "" {
		t.Errorf("examples that exist (-) and that are run (+):\n%s", diff)
	}
}

// The configuration in the README is one that TestAccExamples runs.
func TestReadme(t *testing.T) {
	if !strings.Contains(read(t, "../README.md"), "```terraform\n"+read(t, "provider/provider.tf")+"```\n") {
		t.Error("README.md does not show examples/provider/provider.tf as it is")
	}
}
