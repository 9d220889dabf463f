// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/agentjobs/terraform-provider-agent/internal/job"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// Another value of an argument is another create, and one that a plan does not know may be, so nothing is adopted or announced.
// Red without: an argument in newJob, or in arguments.
func TestArguments_tellCreatesApart(t *testing.T) {
	// The name is where the record is, prompts have tests of their own, and the others are about this run.
	others := []string{"name", "prompt", "prompt_wo", "wait", "timeouts"}
	var schema resource.SchemaResponse
	job.NewResource().Schema(t.Context(), resource.SchemaRequest{}, &schema)
	tests := map[string][]step{}
	for name, attribute := range schema.Schema.Attributes {
		if slices.Contains(others, name) || !attribute.IsOptional() && !attribute.IsRequired() {
			continue
		}
		docs := func(value any) []object {
			return []object{{address: "docs", job: fakecli.With(attrs{"name": "docs", "prompt": "A"}, attrs{name: value})}}
		}
		other, says := any("other"), []string{notInState}
		switch name {
		case "triggers":
			other = attrs{"a": "b"}
		case "project_id":
			says = nil
		}
		first := step{objects: []object{named("docs", "A")}, creates: 1}
		tests[name+": another value"] = []step{first, {before: lost, objects: docs(other), says: says, creates: 2}}
		tests[name+": not known"] = []step{first, {before: lost, objects: docs(unknown{}), planOnly: true, creates: 1}}
	}
	play(t, tests)
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
	var schema resource.SchemaResponse
	job.NewResource().Schema(t.Context(), resource.SchemaRequest{}, &schema)
	for name, attribute := range schema.Schema.Attributes {
		if !attribute.IsOptional() && !attribute.IsRequired() {
			continue
		}
		if !regexp.MustCompile(`(?m)^\s*` + name + `\s*=`).MatchString(examples.String()) {
			t.Errorf("no example has %s", name)
		}
		if !strings.Contains(string(guide), "`"+name+"`") {
			t.Errorf("the lifecycle guide does not say what another %s does", name)
		}
	}
}
