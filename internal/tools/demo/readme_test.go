// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The configurations in the READMEs are those that make demo and TestAccModule run.
func TestReadme(t *testing.T) {
	for readme, file := range map[string]string{"../README.md": "demo/main.tf", module + "/README.md": module + "/examples/complete/main.tf"} {
		if !strings.Contains(read(t, file), firstExample(t, readme)) {
			t.Errorf("%s does not show %s as it is", readme, file)
		}
	}
}

// firstExample is what a reader pastes.
func firstExample(t *testing.T, readme string) string {
	t.Helper()
	_, after, _ := strings.Cut(read(t, readme), "```terraform\n")
	text, _, ok := strings.Cut(after, "```\n")
	if !ok {
		t.Fatalf("%s has no example", readme)
	}
	return text
}

// The first example as it is pasted, with a stand-in for gh: whatever happens to a release, the next apply is green.
//
// Red without: the condition; gh release view; the option -e; id or pr_link in triggers_replace.
func TestAccReadme(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the example needs a shell")
	}
	const gh = `cd "$(dirname "$0")"
echo "$*" >>calls
case "$1 $2" in
"release view") grep -qxF "$3" released ;;
"release create") [ ! -s down ] && echo "$3" >>released ;;
esac
`
	create := func(release string) string {
		return "release view " + release + "\nrelease create " + release + " --generate-notes\n"
	}
	merge := func(number string) string {
		return "pr merge https://github.com/example/docs/pull/" + number + " --squash --auto\n"
	}
	type step struct {
		release    string
		lost, down bool // the state, and GitHub's releases
		option     string
		edit       bool // the prompt
		fails      bool
		calls      string
		jobs       int
	}
	const nothing, again, failed = "v1 [simulate: 0s, no-pull-request]", "v2 [simulate: 0s, no-pull-request]", "v1 [simulate: 0s, failed]"
	for name, steps := range map[string][]step{
		"with a pull request": {
			{release: "v1", calls: create("v1") + merge("1"), jobs: 1},
			{release: "v1", jobs: 1},
			{release: "v2", calls: create("v2") + merge("2"), jobs: 2},
		},
		"without one": {
			{release: nothing, calls: create(nothing), jobs: 1},
			{release: nothing, jobs: 1},
			{release: nothing, edit: true, calls: "release view " + nothing + "\n" + merge("1"), jobs: 1}, // now it has one
			{release: "v2", calls: create("v2") + merge("2"), jobs: 2},
		},
		"without one, twice": {
			{release: nothing, calls: create(nothing), jobs: 1},
			{release: again, option: "-target", jobs: 2},
			{release: again, calls: create(again), jobs: 2},
		},
		"failed job": {
			{release: failed, fails: true, jobs: 1},
			{release: failed, fails: true, jobs: 1},
			{release: "v2", calls: create("v2") + merge("2"), jobs: 2},
		},
		"lost state": {
			{release: "v1", calls: create("v1") + merge("1"), jobs: 1},
			{release: "v1", lost: true, calls: "release view v1\n" + merge("1"), jobs: 1},
		},
		"release that fails": {
			{release: "v1", down: true, fails: true, calls: create("v1"), jobs: 1},
			{release: "v1", calls: create("v1") + merge("1"), jobs: 1},
		},
		"replaced job": {
			{release: "v1", calls: create("v1") + merge("1"), jobs: 1},
			{release: "v1", option: "-replace", calls: "release view v1\n" + merge("2"), jobs: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, 0)
			s.env = append(s.env, "PATH="+s.dir+":"+os.Getenv("PATH"))
			if err := os.WriteFile(filepath.Join(s.dir, "gh"), []byte("#!/bin/sh\n"+gh), 0o700); err != nil {
				t.Fatal(err)
			}
			s.write("released", "")
			example := firstExample(t, "../README.md")
			s.write("main.tf", example)
			for i, step := range steps {
				s.write("calls", "")
				s.write("down", strings.Repeat("x", map[bool]int{true: 1}[step.down]))
				if step.lost {
					if err := os.Remove(filepath.Join(s.dir, "terraform.tfstate")); err != nil {
						t.Fatal(err)
					}
				}
				if step.edit {
					s.write("main.tf", strings.Replace(example, "Document ${var.release}", "Document v1 [simulate: 2s]", 1))
				}
				args := []string{"-var=release=" + step.release}
				if step.option != "" {
					args = append(args, step.option+"=agent_job.docs")
				}
				shown, ok := s.try(append([]string{"apply", "-auto-approve"}, args...)...)
				calls, err := os.ReadFile(filepath.Join(s.dir, "calls"))
				counts := s.service.Counts()
				if diff := cmp.Diff(step.calls, string(calls)); ok == step.fails || err != nil || diff != "" || counts.Create != step.jobs {
					t.Fatalf("step %d: green: %t, %v, %+v, calls of gh (-want +got):\n%s\n%s", i+1, ok, err, counts, diff, shown)
				}
				if !step.fails && step.option != "-target" {
					s.call("plan", "-detailed-exitcode", "-var=release="+step.release)
				}
			}
		})
	}
}
