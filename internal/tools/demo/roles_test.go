// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"encoding/json"
	"slices"
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
	for prefix, isValid := range map[string]bool{
		"shop/docs": true, "web": false, "web/docs": false, "shop": false, "*": false, "": false, "docs/": false, "$${aws:username}": false,
	} {
		t.Run("prefix "+prefix, func(t *testing.T) {
			t.Parallel()
			s := start(t, 0)
			s.write("main.tf", config+`output "roles" {
  value = { for name, role in local.roles : name => concat(role.subjects, flatten([
    for statement in role.statements : statement.Resource if length(regexall("Put|Delete", jsonencode(statement.Action))) > 0
  ])) }
}
`)
			for _, name := range []string{"plan.json", "apply.json"} {
				s.write(name, read(t, pipelines+"bucket/"+name))
			}
			shown, ok := s.try("apply", "-auto-approve", "-var=bucket=ci-state2", `-var=repositories={`+
				` web = { prefixes = ["web", "shop/web"], plan = ["p"], apply = ["a", "b"] }, docs = { prefixes = ["`+prefix+`"], plan = ["q"], apply = ["c"] } }`)
			if !isValid {
				if ok || !strings.Contains(shown, "Invalid value for variable") {
					t.Errorf("it is allowed:\n%s", shown)
				}
				return
			}
			var got map[string][]string
			if err := json.Unmarshal([]byte(s.call("output", "-json", "roles")), &got); err != nil {
				t.Fatal(err)
			}
			write := func(prefix string) []string {
				state := "arn:aws:s3:::ci-state2/" + prefix + "/*.tfstate"
				return []string{state, state + ".tflock", state + ".agent-journal/*", state, state + ".tflock"}
			}
			want := map[string][]string{
				"web-agent-plan": {"p"}, "web-agent-apply": slices.Concat([]string{"a", "b"}, write("web"), write("shop/web")),
				"docs-agent-plan": {"q"}, "docs-agent-apply": slices.Concat([]string{"c"}, write("shop/docs")),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("who may assume each role, and what it may write (-want +got):\n%s", diff)
			}
		})
	}
}
