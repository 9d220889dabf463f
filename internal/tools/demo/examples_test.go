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
	"github.com/hashicorp/go-version"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/source"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// example is a root module made of files of examples/.
type example struct {
	files           []string
	terraform, tofu string         // the least versions; "-" is none
	job             bool           // there is a job already, under the id that the files have
	before          string         // a file with a call that comes before the apply
	then            func(s *trial) // between the apply and another one
	env             []string
	active          bool       // the apply does not wait
	want            [][]string // the prompts of all jobs in the end
}

const (
	jobs    = "resources/agent_job/"
	data    = "data-sources/agent_job/"
	actions = "actions/"
	lists   = "list-resources/agent_job/"

	migrating = "guides/migrating/import.tf"
	fleets    = "guides/fleets/"
)

func examples() map[string]example {
	elsewhere := [][]string{{"from elsewhere"}}
	fromFile := [][]string{{"Bring the API reference up to date with openapi.json.\n\n" +
		"- Describe each parameter in one sentence.\n- Keep the order of the specification.\n"}}
	const orNone = ". If nothing in docs/ has to change, open no pull request."
	return map[string]example{
		"provider": {
			files: []string{"provider/provider.tf"},
			want:  [][]string{{"Add a quickstart for the Python SDK"}},
		},
		"provider-arguments and resources": {
			files:     []string{"provider/provider-arguments.tf", jobs + "resource.tf", jobs + "resource_options.tf"},
			terraform: "1.10.0", tofu: "1.11.0", // ephemeral variables
			want: [][]string{{"Add a quickstart for the Python SDK"}, {"Write the release notes of the latest release"}},
		},
		"write-only prompt": {
			files:     []string{jobs + "resource_write_only.tf", jobs + "reference.md"},
			terraform: "1.11.0", tofu: "1.11.0",
			want: fromFile,
		},
		"import-by-string-id": {
			files: []string{jobs + "import-by-string-id.tf"}, job: true, want: elsewhere,
		},
		"import-by-identity": {
			files: []string{jobs + "import-by-identity.tf", jobs + "resource.tf"}, job: true, want: elsewhere,
			terraform: "1.12.0", tofu: "1.12.0",
		},
		"import": {
			files: []string{jobs + "resource.tf"}, job: true, before: jobs + "import.sh", want: elsewhere,
		},
		"data source": {
			files: []string{data + "data-source.tf"}, job: true, want: elsewhere,
		},
		"function": {
			files: []string{"functions/pull_request/function.tf"},
			then: func(s *trial) { // null as the CLI sends it; Red without: CallFunction in internal/plugin, with OpenTofu
				s.write("none.tf", "output \"none\" {\n  value = jsonencode(provider::agent::pull_request(null))\n}\n")
				shown := s.call("apply", "-auto-approve")
				if got := s.call("output", "-json", "pull_request"); got != `{"host":"github.com","number":1,"repository":"example/docs"}`+"\n" ||
					!strings.Contains(shown, `none = "null"`) {
					s.Errorf("%s\n%s", got, shown)
				}
			},
			want: [][]string{{"Add a quickstart for the Python SDK"}},
		},
		"list resource": {
			files:     []string{lists + "list-resource.tfquery.hcl", jobs + "resource_write_only.tf", jobs + "reference.md"},
			terraform: "1.14.0", tofu: "-",
			then: func(s *trial) {
				if text := s.call("query"); !strings.Contains(text, "reference, "+s.service.Jobs()[0].ID+", last sent a prompt at ") {
					s.Error(text)
				}
			},
			want: fromFile,
		},
		"list of jobs": {
			files:     []string{lists + "list-resource.tfquery.hcl", jobs + "resource.tf"},
			terraform: "1.14.0", tofu: "-",
			then: func(s *trial) {
				job := s.service.Jobs()[0]
				if text := s.shell(read(s.T, recipes+"jobs.sh")); text != "quickstart "+job.ID+" completed "+job.PullRequest+"\n" {
					s.Error(text)
				}
			},
			want: [][]string{{"Add a quickstart for the Python SDK"}},
		},
		"action agent_start_job, write-only prompt": {
			files:     []string{actions + "agent_start_job/action_write_only.tf"},
			terraform: "1.14.0", tofu: "-",
			want: [][]string{{"Add to the changelog: The beta of the Python SDK starts on Monday"}},
		},
		"action agent_start_job": {
			files:     []string{actions + "agent_start_job/action.tf"},
			terraform: "1.14.0", tofu: "-",
			want: [][]string{{"Bring the API reference up to date with version 2.4.0"}},
		},
		"action agent_start_job, events": {
			files:     []string{actions + "agent_start_job/action_events.tf"},
			terraform: "1.16.0", tofu: "-",
			then: func(s *trial) { s.env = append(s.env, `TF_VAR_pages=["install"]`) },
			want: [][]string{{"Remove all links to the page quickstart"}, {"Write the page install"}, {"Write the page quickstart"}},
		},
		"action agent_send_message": {
			files: []string{actions + "agent_send_message/action.tf"}, job: true,
			terraform: "1.14.0", tofu: "-",
			then: func(s *trial) {
				s.call(append(strings.Fields(read(s.T, actions+"agent_send_message/invoke.sh"))[1:], "-auto-approve")...)
			},
			want: [][]string{{"from elsewhere", "Make the introduction shorter"}},
		},
		"action agent_send_message, after a job": {
			files:     []string{actions + "agent_send_message/action_after_job.tf"},
			terraform: "1.14.0", tofu: "-",
			want: [][]string{{"Bring the API reference up to date", "Run each example of the pull request, and correct those that fail"}},
		},
		"output of another resource": {
			files: []string{recipes + "output.tf"},
			want:  [][]string{{"Document that orders are now at https://queue.example.com/orders"}},
		},
		"aliases": {
			files:     []string{jobs + "resource.tf", recipes + "aliases.tf"},
			terraform: "1.10.0", tofu: "1.11.0", // ephemeral variables
			want: [][]string{{"Add a quickstart for the Python SDK"}, {"proj_456: Correct the spelling on all pages"}},
		},
		"fleet": {
			files: []string{fleets + "main.tf"}, env: []string{`TF_VAR_projects={"a" = "proj_1", "b" = "proj_2"}`},
			want: [][]string{{"proj_1: Correct the spelling on all pages"}, {"proj_2: Correct the spelling on all pages"}},
		},
		"changes": {
			files: []string{recipes + "changes.tf"}, env: []string{"TF_VAR_ref=v1", "TF_VAR_commit=a"},
			then: func(s *trial) { s.env = append(s.env, "TF_VAR_ref=main", "TF_VAR_commit=b [simulate: 1s]") },
			want: [][]string{{
				"Bring docs/ up to date with v1 at commit a" + orNone, "Bring docs/ up to date with main at commit b [simulate: 1s]" + orNone,
			}},
		},
		"release": {
			files: []string{recipes + "release.tf"}, env: []string{"TF_VAR_ref=v1"},
			then: func(s *trial) { s.env = append(s.env, "TF_VAR_ref=v2") },
			want: [][]string{{"Document what is new in v1" + orNone}, {"Document what is new in v2" + orNone}},
		},
		"schedule": {
			files: []string{recipes + "schedule.tf"}, env: []string{"TF_VAR_run=1"},
			then: func(s *trial) { s.env = append(s.env, "TF_VAR_run=2") },
			want: [][]string{{"Correct the spelling in the API reference"}, {"Correct the spelling in the API reference"}},
		},
		"without waiting": {
			files: []string{recipes + "without-waiting.tf"}, env: []string{"TF_VAR_ref=v1 [simulate: 1h]"},
			active: true, want: [][]string{{"Document what is new in v1 [simulate: 1h]"}},
		},
		"projects": {
			files: []string{recipes + "projects.tf"},
			want:  [][]string{{"Shorten all pages"}, {"proj_456: Shorten all pages"}},
		},
	}
}

// setup is what configurations without required_providers lack.
func setup(t *testing.T) string {
	text, _, _ := strings.Cut(read(t, "provider/provider.tf"), "resource ")
	return text
}

// The examples of the documentation, each run as it is by a real CLI; only the
// id of a job that was there before is put in, and service and backend are here.
func TestAccExamples(t *testing.T) {
	t.Parallel()
	for name, test := range examples() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, 0)
			needs(t, test.terraform, test.tofu)
			s.env = append(s.env, test.env...)
			s.write("prompt.md", "Shorten all pages")
			id := "job_456"
			if test.job {
				id = s.service.Create("proj_123", "from elsewhere").ID
			}
			here := strings.NewReplacer("job_456", id, "https://api.mintlify.com", strings.TrimPrefix(s.env[0], "AGENT_BASE_URL="))
			replace := func(name string) string { return backend.ReplaceAllLiteralString(here.Replace(read(t, name)), "") }
			complete := false
			for _, file := range test.files {
				s.write(path.Base(file), replace(file))
				complete = complete || strings.Contains(replace(file), "required_providers")
			}
			if !complete {
				s.write("setup.tf", setup(t))
			}
			if test.before != "" {
				s.call(strings.Fields(replace(test.before))[1:]...)
			}
			if test.then != nil {
				s.call("apply", "-auto-approve")
				test.then(s)
			}
			s.apply()
			s.expect(test.want...)
			isActive := func(job simulator.Job) bool { return job.Status == "active" }
			if slices.ContainsFunc(s.service.Jobs(), isActive) != test.active {
				t.Error("apply did not wait, or it should not")
			}
		})
	}
}

// The policy of the fleets guide, by the commands of the guide, which stop by themselves.
//
// Red without: && after opa; messages in the policy, and after_unknown in it.
func TestAccPolicy(t *testing.T) {
	t.Parallel()
	if cli.Path == "" {
		t.Skip(tfcli.NoCLI)
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
	many := `{"a": "proj_123"`
	for i := range 20 {
		many += fmt.Sprintf(`, "b%d": "proj_123"`, i)
	}
	two, prompt := `{"a": "proj_123", "b": "proj_456"}`, `"Correct the spelling on all pages"`
	unknown := "resource \"terraform_data\" \"late\" {\n input = \"late\"\n}\n"
	for name, test := range map[string]struct {
		config, projects, want string
		least                  string // version of Terraform
		before                 string // applied earlier
	}{
		"allowed": {fleet, two, "", "", ""},
		"too many messages": {
			with(prompt, `"Shorten all pages"`), two, "2 messages, and at most 1 are allowed.", "", fleet,
		},
		"too many messages, write-only": {
			with("prompt     = "+prompt, `prompt_wo  = "Shorten all pages"`), two, "2 messages, and at most 1 are allowed.", "1.11.0", fleet,
		},
		"no message":      {with(`on_failure = var.on_failure`, ""), two, "", "", fleet},
		"other project":   {fleet, `{"a": "proj_123", "b": "proj_789"}`, `agent_job.spelling[\"b\"]: the project proj_789 is not allowed.`, "", ""},
		"too many":        {fleet, many + "}", "21 new jobs, and at most 20 are allowed.", "", ""},
		"unknown project": {with("each.value", "terraform_data.late.output") + unknown, `{"a": "proj_123"}`, `: the project null is not allowed.`, "", ""},
		"action": {
			setup(t) + read(t, actions+"agent_start_job/action.tf") + "variable \"projects\" {}\n", "{}",
			"action.agent_start_job.reference: the project null is not allowed.", "1.14.0", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, 0)
			if test.least != "" {
				needs(t, test.least, "-")
			}
			s.write("projects.tfvars", "projects = "+test.projects+"\n")
			s.write("policy.rego", strings.Replace(read(t, fleets+"policy.rego"), "max_messages := 20", "max_messages := 1", 1))
			if test.before != "" {
				s.write("main.tf", test.before)
				s.call("apply", "-auto-approve", "-var-file=projects.tfvars")
			}
			s.write("main.tf", test.config)
			shown := s.shell("PATH='" + bin + "':$PATH\n{ " + read(t, fleets+"policy.sh") + "} || true")
			if test.want == "" || test.before != "" {
				s.expect([]string{"Correct the spelling on all pages"}, []string{"proj_456: Correct the spelling on all pages"})
			} else {
				s.expect()
			}
			if !strings.Contains(shown, test.want) {
				t.Errorf("want %q in:\n%s", test.want, shown)
			}
		})
	}
}

// The generated configuration lacks name and prompt: nobody but the user knows them.
func TestAccGenerateConfig(t *testing.T) {
	t.Parallel()
	s := start(t, 0)
	broken := version.MustConstraints(version.NewConstraint(">= 1.16.0, < 1.16.3"))
	if cli.Product == tfcli.Terraform && (broken.Check(cli.Version) || cli.Version.String() == "1.17.0-beta1") {
		t.Skipf("%s ignores required_providers for an import block without a resource: hashicorp/terraform#39144", cli.Name())
	}
	id := s.service.Create("proj_123", "from elsewhere").ID
	s.write("import.tf", strings.ReplaceAll(read(t, migrating), "job_456", id))
	shown, ok := s.try("plan", "-generate-config-out=generated.tf")
	generated, err := os.ReadFile(filepath.Join(s.dir, "generated.tf"))
	if ok || err != nil || !strings.Contains(shown, "Exactly one of these attributes must be configured: [prompt,prompt_wo]") {
		t.Fatalf("%t, %v\n%s", ok, err, shown)
	}
	s.write("generated.tf", strings.NewReplacer(
		"name       = null", `name = "quickstart"`, "prompt     = null", `prompt = "Add a quickstart for the Python SDK"`,
	).Replace(string(generated)))
	s.apply()
	s.expect([]string{"from elsewhere"})
}

// TestDemo is `make demo` with a shorter first job.
func TestDemo(t *testing.T) {
	t.Parallel()
	if !canInterrupt {
		t.Skip("nobody can press Ctrl-C here")
	}
	start(t, 0) // skips without a CLI
	if err := run(t.Context(), t.Output(), false, root+"/examples/demo", time.Second); err != nil {
		t.Error(err)
	}
}

// Every configuration in examples/ is run by a test, those of modules by
// TestAccModule, which finds them itself. AWS and Azure are not at hand: make lint parses their files, and the workflows.
func TestEveryExampleIsRun(t *testing.T) {
	run := []string{"demo/main.tf", migrating, pipelines + "agent.tf", pipelines + "bucket/main.tf", pipelines + "backend-azurerm.tf"}
	for _, test := range examples() {
		run = append(run, test.files...)
	}
	slices.Sort(run)
	there := slices.DeleteFunc(filesIn(t, root+"/examples", ".tf", ".tfquery.hcl", ".md"),
		func(file string) bool { return strings.HasPrefix(file, "modules/") })
	if diff := cmp.Diff(there, slices.Compact(run)); diff != "" {
		t.Errorf("examples that exist (-) and that are run (+):\n%s", diff)
	}
}
