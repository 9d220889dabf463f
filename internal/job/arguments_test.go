// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// While a plan does not know an argument, nothing is announced: TestAdoption_everyArgument tries what another value does.
//
// Red without: any argument in arguments.
func TestArguments_notKnown(t *testing.T) {
	tests := map[string][]step{}
	for _, name := range arguments(t) {
		if strings.HasPrefix(name, "prompt") || name == "wait" || name == "timeouts" {
			continue
		}
		planned := []object{{address: "docs", job: fakecli.With(attrs{"name": "docs", "prompt": "A"}, attrs{name: unknown{}})}}
		tests[name] = []step{
			{objects: []object{named("docs", "A")}, creates: 1},
			{before: lost, objects: planned, planOnly: true, creates: 1},
		}
	}
	play(t, tests)
}

// arguments are what a configuration sets.
func arguments(t *testing.T) (names []string) {
	t.Helper()
	for _, attribute := range fakecli.Unconfigured(t).Schemas().ResourceSchemas["agent_job"].Block.Attributes {
		if attribute.Optional || attribute.Required {
			names = append(names, attribute.Name)
		}
	}
	return names
}

// Each argument is in an example, and the lifecycle guide says what its change does.
func TestArguments_areDocumented(t *testing.T) {
	t.Parallel()
	root := os.DirFS(filepath.Join("..", ".."))
	guide, err := fs.ReadFile(root, "templates/guides/lifecycle.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	var examples strings.Builder
	err = fs.WalkDir(root, "examples", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".tf" {
			return err
		}
		text, err := fs.ReadFile(root, path)
		examples.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range arguments(t) {
		if !regexp.MustCompile(`(?m)^\s*` + name + `\s*=`).MatchString(examples.String()) {
			t.Errorf("no example has %s", name)
		}
		if !strings.Contains(string(guide), "`"+name+"`") {
			t.Errorf("the lifecycle guide does not say what another %s does", name)
		}
	}
}
