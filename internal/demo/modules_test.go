// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package demo

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// moduleJobs are the prompts of the jobs that a module's tests start. They
// cannot compare two runs themselves: OpenTofu knows no run.NAME in an assert.
func moduleJobs() map[string][][]string {
	const first = "Add a quickstart for the Python SDK [simulate: "
	return map[string][][]string{
		"agent-job/integration.tftest.hcl": {
			{first + "1s, failed]"},
			{first + "1s]"},
			{first + "1s]", "Show the async client too [simulate: 1s]"},
			{first + "active]"},
		},
	}
}

// Each module's own tests, on the CLI that is there, and its examples.
func TestAccModules(t *testing.T) {
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
			for _, file := range filesIn(t, module, ".tf", ".tftest.hcl") {
				s.write(t, file, all.read(t, path.Join("modules", name, file)))
			}
			return s
		}
		tests, err := filepath.Glob(filepath.Join(module, "tests", "*.tftest.hcl"))
		if err != nil || len(tests) < 2 {
			t.Fatalf("tests of %s: %v, %v", name, tests, err)
		}
		for _, test := range tests {
			file := filepath.Base(test)
			t.Run(name+"/"+file, func(t *testing.T) {
				all.since(t, "1.7.0", "1.8.0") // mocks
				s := start(t)
				if strings.HasPrefix(file, "unit") {
					s.env = nil // a mock needs none
				}
				s.call(t, "init", "-no-color")
				shown := s.call(t, "test", "-no-color", "-filter=tests/"+file)
				if !strings.Contains(shown, " passed, 0 failed.") || strings.Contains(shown, "Success! 0 passed") {
					t.Errorf("%s", shown)
				}
				t.Log(shown)
				if diff := cmp.Diff(moduleJobs()[name+"/"+file], s.prompts()); diff != "" {
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
				s := start(t)
				s.dir = filepath.Join(s.dir, "examples", filepath.Base(example))
				s.call(t, "init", "-no-color")
				s.call(t, "apply", "-auto-approve", "-no-color")
				s.call(t, "plan", "-detailed-exitcode", "-no-color")
				if diff := cmp.Diff([][]string{{"Add a quickstart for the Python SDK"}}, s.prompts()); diff != "" {
					t.Error(diff)
				}
			})
		}
		t.Run(name+"/README.md", func(t *testing.T) {
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
