// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

var stateHere = regexp.MustCompile(`(?s)  backend "http" \{.*?\n  \}\n`)

// startRecipe is startPipeline for a configuration of the recipes, which differs from the guide's in the rest.
func startRecipe(t *testing.T, name string, jobs time.Duration) *runner {
	t.Helper()
	r := startPipeline(t, jobs)
	text := backend.ReplaceAllLiteralString(read(t, recipes+name+".tf"), stateHere.FindString(r.files["agent/main.tf"]))
	r.files = map[string]string{"agent/main.tf": strings.ReplaceAll(text, "https://api.mintlify.com", r.values["vars.AGENT_BASE_URL"])}
	return r
}

// The recipes for GitHub, each played with what starts it, again and again.
func TestAccRecipes(t *testing.T) {
	t.Parallel()
	type run struct{ on, ref, commit, id, closed string }
	const again = "b [simulate: 1s]" // or a message waits for a minute
	changes := func(ref, commit string) string {
		return "Bring docs/ up to date with " + ref + " at commit " + commit + ". If nothing in docs/ has to change, open no pull request."
	}
	release := func(ref string) string {
		return "Document what is new in " + ref + ". If nothing in docs/ has to change, open no pull request."
	}
	prompt := strings.Repeat("Correct the spelling on all pages.\n", 150_000/35+1)
	spelling := "Correct the spelling in the API reference"
	for recipe, test := range map[string]struct {
		config  string
		jobs    time.Duration
		runs    []run
		outcome string // of each
		links   int
		want    [][]string
	}{
		"merged": {"changes", 0, []run{{commit: "a"}, {commit: again}, {commit: "c", closed: "1"}}, "pull_request", 1, [][]string{
			{changes("main", "a"), changes("main", again)}, {changes("main", "c")},
		}},
		"any": {"changes", 0, []run{{on: "tag", ref: "v1", commit: "a"}, {on: "schedule", commit: again}, {on: "workflow_dispatch", commit: again + "c"}}, "pull_request", 1, [][]string{
			{changes("v1", "a"), changes("main", again), changes("main", again+"c")},
		}},
		"release":         {"release", 0, []run{{on: "tag", ref: "v1"}, {on: "release", ref: "v1"}, {on: "release", ref: "v2"}}, "pull_request", 1, [][]string{{release("v1")}, {release("v2")}}},
		"schedule":        {"schedule", 0, []run{{on: "schedule", id: "1"}, {on: "schedule", id: "1"}, {on: "schedule", id: "2"}}, "pull_request", 1, [][]string{{spelling}, {spelling}}},
		"without-waiting": {"without-waiting", time.Hour, []run{{on: "tag", ref: "v1"}, {on: "tag", ref: "v1"}}, "active", 0, [][]string{{"Document what is new in v1"}}},
		"notify":          {"projects", 0, []run{{}, {}}, "pull_request", 2, [][]string{{prompt}, {"proj_456: " + prompt}}},
	} {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			r := startRecipe(t, test.config, test.jobs)
			r.files["agent/prompt.md"] = prompt
			for i, run := range test.runs {
				if run.on == "" {
					run.on = "push"
				}
				r.on(run.on)
				ref := map[bool]string{true: "main", false: run.ref}[run.ref == ""]
				maps.Copy(r.values, map[string]string{"github.ref_name": ref, "github.sha": run.commit, "github.run_id": run.id})
				r.host.pulls[run.closed] = "closed"
				text, failed := r.github(recipes + recipe + ".yml")
				if got := r.host.outputs; failed != "" || got["outcome"] != test.outcome || strings.Count(got["pull_requests"], "https://") != test.links {
					t.Fatalf("run %d: %q failed, outputs %q\n%s", i+1, failed, got, text)
				}
			}
			if test.outcome == "active" { // a later run reports the link
				r.service.SetStatus(r.service.Jobs()[0].ID, "completed")
				if text, failed := r.github(recipes + recipe + ".yml"); failed != "" || r.host.outputs["pull_request"] == "" {
					t.Errorf("%q failed, outputs %q\n%s", failed, r.host.outputs, text)
				}
			}
			r.expect(test.want...)
		})
	}
}

// nextJob is what a caller does with the outputs, with stand-ins for its tools. It returns what these are called with.
func nextJob(t *testing.T, recipe, job string, outputs map[string]string, tools map[string]string) (calls, failed string) {
	t.Helper()
	onLinux(t)
	r := &runner{trial: &trial{T: t, dir: t.TempDir()}, bin: t.TempDir(), values: map[string]string{
		"github.token": "token", "secrets.MERGE_TOKEN": "merge", "secrets.SLACK_WEBHOOK_URL": "https://hooks.example.com/1", "github.server_url": "https://github.com",
		"github.repository": "example/docs", "github.ref_name": "v1", "!cancelled()": "true",
	}}
	for name, value := range outputs {
		r.values["needs.agent.outputs."+name] = value
	}
	for name, script := range tools {
		r.tool(name, script)
	}
	failed = r.githubNext(recipes+recipe, job)
	text, err := os.ReadFile(r.dir + "/calls")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text), failed
}

// A release comes out once. Its pull request is merged after it, if it is one of the repository.
//
// Red without: gh release view, the check of the link, or its anchors.
func TestRelease(t *testing.T) {
	t.Parallel()
	const gh, check, view, create = "echo \"$GH_TOKEN $*\" >>calls\n", "Check the link", "token release view v1\n", "token release create v1 --verify-tag --generate-notes\n"
	for name, test := range map[string]struct{ gh, want string }{
		"first":     {gh + `[ "$2" != view ]`, view + create},
		"a re-run":  {gh, view},
		"no access": {gh + "false", view + create},
	} {
		calls, failed := nextJob(t, "release.yml", "release", nil, map[string]string{"gh": test.gh})
		if calls != test.want || (failed != "") != (name == "no access") {
			t.Errorf("%s: %q failed, calls: %s", name, failed, calls)
		}
	}
	link := "https://github.com/example/docs/pull/1"
	for _, test := range []struct{ link, failed string }{
		{link, ""},
		{"https://GitHub.com/Example/docs/pull/1", ""},
		{"", check}, // more than one
		{"https://github.com/other/docs/pull/1", check},
		{"https://github.com.example/example/docs/pull/1", check},
		{link + "/../../../../other/docs/pull/1", check},
		{"x " + link, check},
		{link + "\n--admin", check},
		{"--admin", check},
	} {
		calls, failed := nextJob(t, "release.yml", "merge", map[string]string{"pull_request": test.link}, map[string]string{"gh": gh})
		want := map[bool]string{true: "merge pr merge " + test.link + " --squash --auto\n"}[test.failed == ""]
		if failed != test.failed || calls != want {
			t.Errorf("%q: %q failed, calls: %s", test.link, failed, calls)
		}
	}
}

// What the agent or a contributor has written is a text in Slack, and no command.
func TestNotify(t *testing.T) {
	t.Parallel()
	calls, failed := nextJob(t, "notify.yml", "notify", map[string]string{"message": `release: completed, "x" $(id)`},
		map[string]string{"curl": "{ echo \"$*\"; cat; } >>calls\n"})
	want := "--fail --silent --show-error --json @- https://hooks.example.com/1\n{\n  \"text\": \"release: completed, \\\"x\\\" $(id)\"\n}\n"
	if diff := gocmp.Diff(want, calls); failed != "" || diff != "" {
		t.Errorf("%q failed, calls (-want +got):\n%s", failed, diff)
	}
}
