// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Two repositories share a bucket, and none may write below a prefix of the other. Without AWS, only what makes the
// policies is played: TestS3_policy tries them.
//
// Red without: ":::" or the quote in what is replaced; a pattern between slashes is a regular expression.
func TestAccRoles(t *testing.T) {
	t.Parallel()
	_, config, _ := strings.Cut(read(t, pipelines+"bucket/main.tf"), "  }\n}\n")
	config, _, _ = strings.Cut(config, "# S3 encrypts")
	start := func(t *testing.T) *trial {
		s := start(t, 0)
		s.write("main.tf", config+"output \"roles\" {\n  value = local.roles\n}\n")
		for _, name := range []string{"plan.json", "apply.json"} {
			s.write(name, read(t, pipelines+"bucket/"+name))
		}
		return s
	}
	const two = `{ web = { prefixes = ["web", "shop/web"], plan = ["p"], apply = ["a", "b"] }, docs = { prefixes = ["PREFIX"], plan = ["q"], apply = ["c"] } }`
	repositories := func(prefix string) string { return "-var=repositories=" + strings.ReplaceAll(two, "PREFIX", prefix) }

	t.Run("policies", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		s.call("apply", "-auto-approve", "-var=bucket=ci-state2", repositories("shop/docs"))
		var roles map[string]struct {
			Subjects   []string
			Statements []struct{ Action, Resource any }
		}
		if err := json.Unmarshal([]byte(s.call("output", "-json", "roles")), &roles); err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for name, role := range roles {
			got[name] = append(got[name], strings.Join(role.Subjects, " "))
			for _, statement := range role.Statements {
				if text, _ := json.Marshal(statement.Action); strings.Contains(string(text), "Put") || strings.Contains(string(text), "Delete") {
					resources, _ := json.Marshal(statement.Resource)
					got[name] = append(got[name], strings.NewReplacer("arn:aws:s3:::", "", `"`, "", "[", "", "]", "").Replace(string(resources)))
				}
			}
		}
		write := func(prefix string) []string {
			state := "ci-state2/" + prefix + "/*.tfstate"
			return []string{state + "," + state + ".tflock," + state + ".agent-journal/*", state + "," + state + ".tflock"}
		}
		want := map[string][]string{
			"web-agent-plan":   {"p"},
			"web-agent-apply":  append(append([]string{"a b"}, write("web")...), write("shop/web")...),
			"docs-agent-plan":  {"q"},
			"docs-agent-apply": append([]string{"c"}, write("shop/docs")...),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("who may assume each role, and what it may write (-want +got):\n%s", diff)
		}
	})
	for _, prefix := range []string{"web", "web/docs", "shop", "*", "", "docs/", "${aws:username}"} {
		t.Run("prefix "+prefix, func(t *testing.T) {
			t.Parallel()
			if shown, ok := start(t).try("plan", "-var=bucket=ci-state2", repositories(strings.ReplaceAll(prefix, "$", "$$"))); ok || !strings.Contains(shown, "Invalid value for variable") {
				t.Errorf("%q is allowed:\n%s", prefix, shown)
			}
		})
	}
}
