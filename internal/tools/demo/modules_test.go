// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// moduleJobs are the prompts of the jobs that a module's tests start. They
// cannot compare two runs themselves: OpenTofu knows no run.NAME in an assert.
func moduleJobs() map[string][][]string {
	const first = "Add a quickstart for the Python SDK [simulate: "
	return map[string][][]string{
		"agent-job": {
			{first + "1s, failed]"},
			{first + "1s]"},
			{first + "1s]", "Show the async client too [simulate: 1s]"},
			{first + "active]"},
		},
	}
}

// Each module's own tests, on the CLI that is there, and its examples.
func TestAccModules(t *testing.T) {
	t.Parallel()
	all := newTrials(t)
	modules, err := filepath.Glob(filepath.Join(all.root, "examples", "modules", "*"))
	if err != nil || len(modules) == 0 {
		t.Fatalf("modules: %v, %v", modules, err)
	}
	for _, module := range modules {
		name := filepath.Base(module)
		// A copy: init writes into the folder.
		start := func(t *testing.T) *trial {
			t.Helper()
			s := all.start(t, 0)
			s.config = all.plugin.MirrorConfig
			for _, file := range filesIn(t, module, ".tf", "test.hcl") {
				s.write(t, file, all.read(t, path.Join("modules", name, file)))
			}
			return s
		}
		for _, run := range []struct {
			folder string
			want   [][]string // the prompts of the jobs
		}{{"tests", nil}, {"tests/integration", moduleJobs()[name]}} {
			t.Run(name+"/"+run.folder, func(t *testing.T) {
				t.Parallel()
				all.since(t, "1.7.0", "1.8.0") // mocks
				s := start(t)
				if run.want == nil {
					s.env = nil // a mock needs none
				}
				s.call(t, "init")
				shown := s.call(t, "test", "-test-directory="+run.folder)
				t.Log(shown)
				passed := 0
				for _, file := range filesIn(t, filepath.Join(module, run.folder), ".tftest.hcl") {
					if dir, _ := path.Split(file); dir == "" {
						passed += strings.Count(all.read(t, path.Join("modules", name, run.folder, file)), "\nrun ")
					}
				}
				if passed == 0 || !strings.Contains(shown, fmt.Sprintf("Success! %d passed, 0 failed.", passed)) {
					t.Errorf("not all of %d runs have passed", passed)
				}
				if diff := cmp.Diff(run.want, s.prompts()); diff != "" {
					t.Errorf("prompts of the jobs at the service (-want +got):\n%s", diff)
				}
			})
		}
		examples, err := filepath.Glob(filepath.Join(module, "examples", "*"))
		if err != nil || len(examples) == 0 {
			t.Fatalf("examples of %s: %v, %v", name, examples, err)
		}
		for _, example := range examples {
			t.Run(name+"/"+filepath.Base(example), func(t *testing.T) {
				t.Parallel()
				s := start(t)
				s.dir = filepath.Join(s.dir, "examples", filepath.Base(example))
				s.call(t, "init")
				s.call(t, "apply", "-auto-approve")
				s.call(t, "plan", "-detailed-exitcode")
				if diff := cmp.Diff([][]string{{"Add a quickstart for the Python SDK"}}, s.prompts()); diff != "" {
					t.Error(diff)
				}
			})
		}
		t.Run(name+"/README.md", func(t *testing.T) {
			t.Parallel()
			readme := all.read(t, path.Join("modules", name, "README.md"))
			for _, block := range []string{"variable", "output"} {
				text := all.read(t, path.Join("modules", name, block+"s.tf"))
				for piece := range strings.SplitSeq(text, block+" \"") {
					if id, rest, ok := strings.Cut(piece, `" {`); ok {
						_, description, _ := strings.Cut(rest, `description = "`)
						description, _, _ = strings.Cut(description, "\"\n")
						if row := fmt.Sprintf("| `%s` | %s |", id, description); !strings.Contains(readme, row) {
							t.Errorf("README.md has no row %q", row)
						}
					}
				}
			}
			example := all.read(t, path.Join("modules", name, "examples", "complete", "main.tf"))
			_, usage, _ := strings.Cut(readme, "```terraform\n")
			usage, _, _ = strings.Cut(usage, "```")
			if usage == "" || !strings.Contains(example, usage) {
				t.Error("the usage in README.md is not that of examples/complete")
			}
		})
	}
}

// The README's recipe for another repository, but for the clone and its
// installation, which TestAccInstall looks at.
func TestAccModuleRecipe(t *testing.T) {
	t.Parallel()
	all := newTrials(t)
	all.since(t, "1.7.0", "1.8.0")
	if runtime.GOOS == "windows" {
		t.Skip("it is for a shell")
	}
	_, text, _ := strings.Cut(all.read(t, "modules/agent-job/README.md"), "```shell\ngit clone ")
	text, _, _ = strings.Cut(text, "```")
	_, text, ok := strings.Cut(text, "| tail -n 1)\"\n")
	if !ok {
		t.Fatal("the recipe is not where it was")
	}
	s := all.start(t, 0)
	for _, file := range filesIn(t, filepath.Join(all.root, "examples", "modules", "agent-job"), ".tf") {
		s.write(t, file, all.read(t, path.Join("modules", "agent-job", file)))
	}
	s.write(t, "tests/integration/one.tftest.hcl", `run "one" {
  variables {
    prompt = "[simulate: 0s]"
  }
}
`)
	if err := os.Symlink(all.root, filepath.Join(s.dir, "terraform-provider-agent")); err != nil {
		t.Fatal(err)
	}
	cmd := all.cli.Command(t.Context(), all.plugin.MirrorConfig, "-e", "-c", `terraform() { "$TEST_CLI" "$@"; }`+"\n"+text)
	cmd.Path, cmd.Args[0], cmd.Dir = "/bin/sh", "sh", s.dir
	cmd.Env = append(cmd.Env, "TEST_CLI="+all.cli.Path)
	shown, err := cmd.CombinedOutput()
	log, _ := os.ReadFile(filepath.Join(s.dir, "simulator.log"))
	if err != nil || !strings.Contains(string(shown), "1 passed, 0 failed.") || strings.Count(string(log), " POST ") != 1 {
		t.Errorf("%v\n%s\nsimulator:\n%s", err, shown, log)
	}
}
