// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// example is a root module made of files of examples/.
type example struct {
	files           []string
	setup           bool     // add what the first lines of provider.tf have
	terraform, tofu string   // the least versions; "-" is none
	job             bool     // there is a job already, under the id that the files have
	before          string   // a file with a call that comes before the apply
	apply           []string // instead of a plain apply
	again           []string // arguments of a second apply
	edit            []string // a text in the files and what replaces it before a second apply
	jobs            time.Duration
	want            [][]string // the prompts of all jobs in the end
	projects        []string   // of these jobs, if it matters
}

func examples() map[string]example {
	const (
		jobs = "resources/agent_job/"
		data = "data-sources/agent_job/"
	)
	elsewhere := [][]string{{"from elsewhere"}}
	fleet, projects := [][]string{}, []string{}
	for i := range 100 {
		fleet = append(fleet, []string{"Correct the spelling on all pages"})
		projects = append(projects, fmt.Sprintf(`"docs-%[1]d" = "proj_%[1]d"`, i))
	}
	return map[string]example{
		"demo": {
			files: []string{"demo/main.tf"},
			want:  [][]string{{firstPrompt}},
		},
		"provider": {
			files: []string{"provider/provider.tf"},
			want:  [][]string{{"Add a quickstart for the Python SDK"}},
		},
		"provider-arguments and resources": {
			files: []string{
				"provider/provider-arguments.tf", jobs + "resource.tf", jobs + "resource_options.tf",
				jobs + "resource_strict.tf",
			},
			terraform: "1.10.0", tofu: "1.11.0", // ephemeral variables
			want: [][]string{
				{"Add a quickstart for the Python SDK"}, {"Bring the API reference up to date"},
				{"Write the release notes of the latest release"},
			},
		},
		"write-only prompt": {
			files:     []string{jobs + "resource_write_only.tf", jobs + "reference.md"},
			setup:     true,
			terraform: "1.11.0", tofu: "1.11.0",
			want: [][]string{{"Bring the API reference up to date with openapi.json.\n\n" +
				"- Describe each parameter in one sentence.\n- Keep the order of the specification.\n"}},
		},
		"import-by-string-id": {
			files: []string{jobs + "import-by-string-id.tf"}, setup: true, job: true, want: elsewhere,
		},
		"import-by-identity": {
			files: []string{jobs + "import-by-identity.tf"}, setup: true, job: true, want: elsewhere,
			terraform: "1.12.0", tofu: "1.12.0",
		},
		"import": {
			files: []string{jobs + "resource.tf"}, setup: true, job: true, want: elsewhere,
			before: jobs + "import.sh",
		},
		"data source": {
			files: []string{data + "data-source.tf"}, setup: true, job: true, want: elsewhere,
		},
		"data source, two steps": {
			files: []string{data + "data-source_two_steps.tf"}, setup: true,
			jobs: 2 * time.Second,
			edit: []string{"Write the changelog of the latest release", "Shorten the changelog"},
			want: [][]string{{"Write the changelog of the latest release", "Shorten the changelog"}},
		},
		"action agent_start_job": {
			files: []string{"actions/agent_start_job/action.tf"}, setup: true,
			terraform: "1.14.0", tofu: "-",
			want: [][]string{{"Bring the API reference up to date with version 2.4.0"}},
		},
		"action agent_start_job, events": {
			files: []string{"actions/agent_start_job/action_events.tf"}, setup: true,
			terraform: "1.16.0", tofu: "-",
			again: []string{"-var", `pages=["install"]`},
			want:  [][]string{{"Remove all links to the page quickstart"}, {"Write the page install"}, {"Write the page quickstart"}},
		},
		"action agent_send_message": {
			files: []string{"actions/agent_send_message/action.tf"}, setup: true, job: true,
			terraform: "1.14.0", tofu: "-",
			apply: []string{"actions/agent_send_message/invoke.sh"},
			want:  [][]string{{"from elsewhere", "Make the introduction shorter"}},
		},
		"action agent_send_message, after a job": {
			files: []string{"actions/agent_send_message/action_after_job.tf"}, setup: true,
			terraform: "1.14.0", tofu: "-",
			want: [][]string{{"Bring the API reference up to date", "Run each example of the pull request, and correct those that fail"}},
		},
		"function": {
			files: []string{"functions/parse_pr_link/function.tf"}, setup: true,
			terraform: "1.8.0", tofu: "1.7.0",
			want: [][]string{{"Add a quickstart for the Python SDK"}},
		},
		"aliases": {
			files: []string{"resources/agent_job/resource.tf", recipes + "aliases.tf"}, setup: true,
			terraform: "1.10.0", tofu: "1.11.0", // ephemeral variables
			want:     [][]string{{"Add a quickstart for the Python SDK"}, {"Correct the spelling on all pages"}},
			projects: []string{"proj_123", "proj_456"},
		},
		"fleet": {
			files: []string{"guides/fleets/main.tf"},
			apply: []string{"-parallelism=100", "-var", "projects={" + strings.Join(projects, ", ") + "}"},
			want:  fleet,
		},
	}
}

// The examples of the documentation, each run as it is by a real CLI; only the
// id of a job that was there before is put in.
func TestAccExamples(t *testing.T) {
	t.Parallel()
	all := newTrials(t)
	setup, _, _ := strings.Cut(all.read(t, "provider/provider.tf"), "resource ")
	tests := examples()
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all.since(t, test.terraform, test.tofu)
			s := all.start(t, test.jobs)
			id := "job_456"
			if test.job {
				id = s.service.Create("proj_123", "from elsewhere").ID
			}
			read := func(name string) string { return strings.ReplaceAll(all.read(t, name), "job_456", id) }
			script := func(name string) []string { return strings.Fields(read(name))[1:] } // without the CLI's name

			if test.setup {
				s.write(t, "setup.tf", setup)
			}
			for _, file := range test.files {
				s.write(t, path.Base(file), read(file))
			}
			if test.before != "" {
				s.call(t, script(test.before)...)
			}
			apply := slices.Clone(test.apply)
			if len(apply) == 1 {
				apply = script(apply[0])[1:]
			}
			s.call(t, append([]string{"apply", "-auto-approve"}, apply...)...)
			if test.again != nil || test.edit != nil {
				apply = test.again
				for _, file := range test.files {
					s.write(t, path.Base(file), strings.NewReplacer(test.edit...).Replace(read(file)))
				}
				s.call(t, append([]string{"apply", "-auto-approve"}, apply...)...)
			}
			var projects []string
			for _, job := range s.service.Jobs() {
				projects = append(projects, job.Project)
				if job.Status == "active" {
					t.Errorf("apply did not wait for %+v", job)
				}
			}
			plan := slices.DeleteFunc(apply, func(arg string) bool { return strings.HasPrefix(arg, "-invoke") })
			s.call(t, append([]string{"plan", "-detailed-exitcode"}, plan...)...)
			if diff := cmp.Diff(test.want, s.prompts()); diff != "" {
				t.Error(diff)
			}
			slices.Sort(projects)
			if test.projects != nil && !slices.Equal(projects, test.projects) {
				t.Errorf("projects: %v", projects)
			}
		})
	}
}

// Every configuration in examples/ is run by a test, those of modules by
// TestAccModule, which finds them itself. Atlantis is not at hand: its file is parsed.
func TestEveryExampleIsRun(t *testing.T) {
	var run []string
	for _, test := range examples() {
		run = append(run, test.files...)
	}
	run = append(run, pipelineFiles()...)
	run = append(run, migratingFiles()...)
	run = append(run, recipeFiles()...)
	slices.Sort(run)
	text, err := os.ReadFile("../../../examples/" + pipelines + "atlantis.yaml")
	var atlantis struct {
		Version             int
		Projects, Workflows any
	}
	if err = errors.Join(err, yaml.Unmarshal(text, &atlantis)); err != nil || atlantis.Version != 3 || atlantis.Workflows == nil {
		t.Errorf("atlantis.yaml: %v, %+v", err, atlantis)
	}
	there := slices.DeleteFunc(filesIn(t, "../../../examples", ".tf", ".yml", ".yaml", ".md"),
		func(file string) bool { return strings.HasPrefix(file, "modules/") })
	if diff := cmp.Diff(there, slices.Compact(run)); diff != "" {
		t.Errorf("examples that exist (-) and that are run (+):\n%s", diff)
	}
}

// The configuration in the README is one that TestAccExamples runs.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../../examples/provider/provider.tf")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```terraform\n"+string(example)+"```\n") {
		t.Error("README.md does not show examples/provider/provider.tf as it is")
	}
}
