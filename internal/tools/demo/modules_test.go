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

const module = "modules/agent-job"

// copyModule copies the module into a folder of the root module, because init
// writes into it.
func (s *trial) copyModule(t *testing.T, folder string, endings ...string) {
	t.Helper()
	s.config = s.plugin.MirrorConfig
	for _, file := range filesIn(t, filepath.Join(s.root, "examples", module), endings...) {
		s.write(t, path.Join(folder, file), s.read(t, path.Join(module, file)))
	}
}

// The module's tests on the CLI that is there, and its example.
func TestAccModule(t *testing.T) {
	t.Parallel()
	all := newTrials(t)
	const first = "Add a quickstart for the Python SDK [simulate: "
	for folder, want := range map[string][][]string{ // the prompts of the jobs: OpenTofu's asserts cannot compare two runs
		"tests": nil,
		"tests/integration": {
			{first + "1s, failed]"}, {first + "1s]"}, {first + "1s]", "Show the async client too [simulate: 1s]"}, {first + "active]"},
		},
	} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			all.since(t, "1.7.0", "1.8.0") // mocks
			s := all.start(t, 0)
			s.copyModule(t, ".", ".tf", "test.hcl")
			if want == nil {
				s.env = nil // a mock needs none
			}
			s.call(t, "init")
			shown := s.call(t, "test", "-test-directory="+folder)
			files, err := filepath.Glob(filepath.Join(s.dir, folder, "*.tftest.hcl"))
			if err != nil || len(files) == 0 {
				t.Fatalf("files with tests: %v, %v", files, err)
			}
			runs := 0
			for _, file := range files {
				runs += strings.Count(all.read(t, path.Join(module, folder, filepath.Base(file))), "\nrun ")
			}
			if !strings.Contains(shown, fmt.Sprintf("Success! %d passed, 0 failed.", runs)) {
				t.Errorf("not all of %d runs passed:\n%s", runs, shown)
			}
			if diff := cmp.Diff(want, s.prompts()); diff != "" {
				t.Errorf("prompts of the jobs (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("examples", func(t *testing.T) {
		t.Parallel()
		s := all.start(t, 0)
		s.copyModule(t, ".", ".tf")
		s.dir = filepath.Join(s.dir, "examples", "complete")
		s.call(t, "init")
		s.call(t, "apply", "-auto-approve")
		s.call(t, "plan", "-detailed-exitcode")
		if diff := cmp.Diff([][]string{{"Add a quickstart for the Python SDK"}}, s.prompts()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("README.md", func(t *testing.T) {
		t.Parallel()
		readme := all.read(t, module+"/README.md")
		for _, block := range []string{"variable", "output"} {
			for piece := range strings.SplitSeq(all.read(t, path.Join(module, block+"s.tf")), block+" \"") {
				if id, rest, ok := strings.Cut(piece, `" {`); ok {
					_, description, _ := strings.Cut(rest, `description = "`)
					description, _, _ = strings.Cut(description, "\"\n")
					if row := fmt.Sprintf("| `%s` | %s |", id, description); !strings.Contains(readme, row) {
						t.Errorf("README.md has no row %q", row)
					}
				}
			}
		}
		_, usage, _ := strings.Cut(readme, "```terraform\n")
		usage, _, _ = strings.Cut(usage, "```")
		if usage == "" || !strings.Contains(all.read(t, module+"/examples/complete/main.tf"), usage) {
			t.Error("the usage in README.md is not that of examples/complete")
		}
	})
}

// The README's commands for another repository, except the clone and the
// installation, which TestAccInstall covers.
func TestAccModuleRecipe(t *testing.T) {
	t.Parallel()
	all := newTrials(t)
	all.since(t, "1.7.0", "1.8.0")
	if runtime.GOOS == "windows" {
		t.Skip("it is for a shell")
	}
	_, text, _ := strings.Cut(all.read(t, module+"/README.md"), "| tail -n 1)\"\n")
	text, _, ok := strings.Cut(text, "```")
	if !ok {
		t.Fatal("the commands are not where they were")
	}
	s := all.start(t, 0)
	s.copyModule(t, ".", ".tf")
	s.write(t, "tests/integration/one.tftest.hcl", `run "one" {
  variables {
    prompt = "[simulate: 0s]"
  }
}
`)
	if err := os.Symlink(all.root, filepath.Join(s.dir, "terraform-provider-agent")); err != nil {
		t.Fatal(err)
	}
	s.env = nil // the simulator's is used
	shown := s.shell(t, text)
	log, err := os.ReadFile(filepath.Join(s.dir, "simulator.log"))
	if err != nil || !strings.Contains(shown, "1 passed, 0 failed.") || strings.Count(string(log), " POST ") != 1 {
		t.Errorf("%v\n%s\nsimulator:\n%s", err, shown, log)
	}
}
