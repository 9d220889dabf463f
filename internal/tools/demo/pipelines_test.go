// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

const (
	pipelines = "guides/pipelines/"
	recipes   = "guides/recipes/"
	reference = "Bring the API reference up to date with openapi.yaml."

	openapi = "openapi: 3.1.0\npaths:\n  /a: { get: { summary: A } }\n"
)

// hosts are those that the pipelines run on.
var hosts = map[string]func(r *runner) (text string, ok bool){"GitHub": (*runner).github, "GitLab": (*runner).gitlab}

// A change of a documentation on each host: it is planned, merged, changed again, fails, and is repaired.
//
// Red without: is_over, is_rerun, changed or the marker in run.sh.
func TestAccPipeline(t *testing.T) {
	t.Parallel()
	for name, run := range hosts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startPipeline(t, 0)
			link := func(n int) string { return fmt.Sprintf("https://github.com/example/docs/pull/%d", n) }
			main := r.files["agent/main.tf"]
			jobs, forget := [][]string{}, regexp.MustCompile(`AGENT_JOURNAL_FORGET=(\w+)`)
			text, ok := "", false
			for _, step := range []struct {
				name, on, prompt, api, closed string
				isRerun, forgets              bool
				head                          string // other than the run's
				outcome, changed              string
				comment                       string // in the end
				job                           int    // that gets the prompt, from 1; 0: none
			}{
				{name: "pull request", on: "pull_request", outcome: "planned", comment: "Plan: 1 to add"},
				{name: "second push to it", on: "pull_request", outcome: "planned", comment: "Plan: 1 to add"},
				{name: "merge", outcome: "pull_request", changed: "true", comment: "api-reference: completed, " + link(1), job: 1},
				{name: "no change", outcome: "pull_request", comment: link(1)},
				{name: "prompt, while its pull request is open", prompt: "Shorten it [simulate: 2s]", outcome: "pull_request", changed: "true", comment: "1 to change", job: 1},
				{name: "older run, started again last", isRerun: true, head: "another", outcome: "failed", comment: "the last commit of main is another"},
				{name: "the same, when the branch cannot be read", isRerun: true, head: "-", outcome: "failed", comment: "the last commit of main is unknown"},
				{name: "older run, for the first time", prompt: "Shorten it [simulate: 2s]", head: "another", outcome: "pull_request", comment: "unknown"},
				{name: "prompt, once it is closed", prompt: "Translate it", closed: "1", outcome: "pull_request", changed: "true", comment: link(2), job: 2},
				{name: "path", prompt: "Translate it", api: openapi + "  /b: {}\n", outcome: "pull_request", changed: "true", comment: link(3), job: 3},
				{name: "failure", prompt: "Break it [simulate: failed]", closed: "3", outcome: "failed", comment: "api-reference: failed", job: 4},
				{name: "re-run", isRerun: true, prompt: "Break it [simulate: failed]", outcome: "failed", comment: "Failed"},
				{name: "retry", isRerun: true, prompt: "Break it [simulate: failed]", forgets: true, outcome: "failed", comment: "Failed", job: 5},
				{name: "repair", prompt: "Repair it", outcome: "pull_request", changed: "true", comment: link(6), job: 6},
				{name: "re-run of a tag", on: "tag", isRerun: true, head: "another", prompt: "For a tag", closed: "6", outcome: "pull_request", changed: "true", comment: link(6), job: 7},
			} {
				r.on(cmp.Or(step.on, "push"))
				r.host.pulls[step.closed] = "closed"
				r.host.isRetried, r.values["GITHUB_RUN_ATTEMPT"] = step.isRerun, map[bool]string{false: "1", true: "2"}[step.isRerun]
				r.host.head = strings.Trim(cmp.Or(step.head, "5f7079d"), "-")
				prompt := cmp.Or(step.prompt, reference)
				r.files["agent/main.tf"], r.files["openapi.yaml"] = strings.Replace(main, reference, prompt, 1), cmp.Or(step.api, openapi)
				r.values["forget"] = ""
				if step.forgets {
					r.values["forget"] = forget.FindStringSubmatch(text)[1]
				}
				text, ok = run(r)
				if step.job > len(jobs) {
					jobs = append(jobs, nil)
				}
				if step.job > 0 {
					jobs[step.job-1] = append(jobs[step.job-1], prompt)
				}
				r.expect(slices.SortedFunc(slices.Values(jobs), slices.Compare)...)
				got := r.host.outputs
				want := map[string]string{
					"outcome": step.outcome, "changed": cmp.Or(step.changed, "false"), "message": got["message"],
					"pull_request": got["pull_request"], "pull_requests": strings.ReplaceAll(`["`+got["pull_request"]+`"]`, `[""]`, "[]"),
				}
				if diff := gocmp.Diff(want, got); diff != "" || ok == (step.outcome == "failed") || t.Failed() {
					t.Fatalf("%s: green: %t, outputs (-want +got):\n%s\n%s", step.name, ok, diff, text)
				}
				if r.host.comments != 1 || !strings.Contains(r.host.comment, step.comment) {
					t.Fatalf("%s: not one comment with %q: %d, %q\n%s", step.name, step.comment, r.host.comments, r.host.comment, text)
				}
			}
		})
	}
}

// What a run may not do is said in one sentence, and reaches no service. Only plans are green then. What became of the jobs is
// told apart: a condition is no job, one of a module is, and a committed lock file or errored.tfstate is not this run's. A state
// that the backend refused once is stored by the report. One that it refuses again is kept if nobody else can read it.
//
// Red without: any condition of run, any branch of outcome, .values, .terraform.lock.hcl, rm -f, push or visibility in run.sh;
// isElsewhere in internal/provider; in agent.yml, AGENT_BASE_URL.
func TestAccPipeline_once(t *testing.T) {
	t.Parallel()
	const (
		link    = "https://github.com/example/docs/pull/"
		noEvent = "Plan on pull_request, and apply on push"
		second  = "module \"second\" {\n  source = \"./second\"\n}\n"
	)
	var reached atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(elsewhere.Close)
	edit := func(r *runner, old, changed string) {
		r.files["agent/main.tf"] = strings.ReplaceAll(r.files["agent/main.tf"], old, changed)
	}
	with := func(prompt, more string) func(r *runner) {
		return func(r *runner) { edit(r, reference, prompt); r.files["agent/main.tf"] += more }
	}
	noKey := func(r *runner) { r.values["AGENT_ADMIN_KEY"] = "" }
	state := func(text string) func(r *runner) {
		return func(r *runner) { edit(r, backend.FindString(r.files["agent/main.tf"]), text) }
	}
	refuse := func(times int, isPublic bool) func(r *runner) {
		return func(r *runner) {
			r.host.refuse = times
			if isPublic {
				r.event["repository"], r.values["CI_PROJECT_VISIBILITY"] = map[string]any{"private": false}, "internal"
			}
		}
	}
	for name, test := range map[string]struct {
		on, host             string // empty: push, and both
		change               func(r *runner)
		outcome, says, links string
		creates              int
		isKept               bool // the state, as an artifact
	}{
		"fork":                 {on: "pull_request", change: noKey, outcome: "skipped", says: "Not planned: there is no AGENT_ADMIN_KEY"},
		"merge queue":          {on: "merge_group", host: "GitHub", outcome: "planned", says: "Plan: 1 to add"},
		"schedule":             {on: "schedule", outcome: "pull_request", says: link + "1", links: link, creates: 1},
		"apply without a key":  {change: noKey, outcome: "failed", says: "Nothing was sent: there is no AGENT_ADMIN_KEY"},
		"closed":               {on: "closed", host: "GitHub", outcome: "failed", says: noEvent},
		"pull_request_target":  {on: "pull_request_target", host: "GitHub", outcome: "failed", says: noEvent},
		"no backend":           {change: state(""), outcome: "failed", says: "the configuration in agent has no backend that outlives this run"},
		"backend on this disk": {change: state("backend \"local\" {\n  path = \"x.tfstate\"\n}\n"), outcome: "failed", says: "has no backend"},
		"another service": {on: "pull_request", outcome: "failed", says: "Failed", change: func(r *runner) {
			edit(r, r.values["AGENT_BASE_URL"], elsewhere.URL)
			r.files["agent/main.tf"] += "data \"agent_job\" \"any\" {\n  id = \"job_1\"\n}\n"
		}},

		"nothing changed": {
			host: "GitHub", change: with("x [simulate: no-pull-request]", ""), outcome: "no_pull_request", says: "api-reference: completed, no pull request", creates: 1,
		},
		"one of two": {
			host: "GitHub", change: with("x [simulate: no-pull-request]", second), outcome: "pull_request",
			says: "api-reference: completed, no pull request; second: completed, " + link, links: link, creates: 2,
		},
		"refused link": {host: "GitHub", change: with(badLink, ""), outcome: "link_refused", says: "completed, its link was refused", creates: 1},
		"archived":     {host: "GitHub", change: with("x [simulate: archived]", ""), outcome: "archived", says: "api-reference: archived", creates: 1},
		"no wait": {host: "GitHub", outcome: "active", says: "api-reference: active", creates: 1, change: func(r *runner) {
			edit(r, "  timeouts {", "  wait {\n    enabled = false\n  }\n  timeouts {")
			edit(r, reference, "x [simulate: 1h]")
		}},
		"one fails": {
			host: "GitHub", change: with("x [simulate: failed]", second), outcome: "failed", says: "second: completed, " + link, links: link, creates: 2,
		},

		"state refused once":        {change: refuse(1, false), outcome: "failed", says: link, links: link, creates: 1},
		"state refused":             {change: refuse(-1, false), outcome: "failed", creates: 1, isKept: true},
		"state refused, and public": {change: refuse(-1, true), outcome: "failed", creates: 1},
	} {
		for host, run := range hosts {
			if test.host != "" && test.host != host {
				continue
			}
			t.Run(name+" on "+host, func(t *testing.T) {
				t.Parallel()
				r := startPipeline(t, 0)
				r.on(cmp.Or(test.on, "push"))
				if test.change != nil {
					test.change(r)
				}
				edit(r, "  timeouts {", "  lifecycle {\n    postcondition {\n      condition     = self.id != null\n      error_message = \"x\"\n    }\n  }\n"+
					"  timeouts {")
				r.files["agent/second/main.tf"] = "terraform {\n  required_providers {\n    agent = { source = \"agentjobs/agent\" }\n  }\n}\n" +
					"resource \"agent_job\" \"this\" {\n  name   = \"second\"\n  prompt = \"Second\"\n}\n"
				r.files["agent/.terraform.lock.hcl"] = "provider \"registry.terraform.io/agentjobs/agent\" {\n  version = \"0.1.0\"\n  hashes = [\n    \"h1:x\",\n  ]\n}\n"
				r.files["agent/errored.tfstate"] = `{"version":4,"serial":9}`   // that somebody has committed
				for range 1 + map[string]int{"link_refused": 1}[test.outcome] { // the second run changes nothing, and tells the same
					text, ok := run(r)
					got, links := r.host.outputs, strings.ReplaceAll(`["`+test.links+`"]`, `[""]`, "[]")
					if ok == (test.outcome == "failed" || test.outcome == "archived") || got["outcome"] != test.outcome ||
						!strings.Contains(got["message"], test.says) || !strings.HasPrefix(got["pull_requests"], strings.TrimSuffix(links, `"]`)) ||
						(got["pull_request"] != "") != (strings.Count(got["pull_requests"], "http") == 1) {
						t.Fatalf("green: %t, outputs %q\n%s", ok, got, text)
					}
				}
				if counts := r.service.Counts(); counts.Create != test.creates || counts.Message != 0 || reached.Load() > 0 {
					t.Errorf("requests: %+v, elsewhere %d", counts, reached.Load())
				}
				isStored := test.creates > 0 && r.host.refuse == 0
				if (r.host.state != nil) != isStored || strings.Contains(r.host.kept, "agent_job") != test.isKept || (r.host.kept != "") != test.isKept {
					t.Errorf("state %q, kept %q", r.host.state, r.host.kept)
				}
			})
		}
	}
}

// Nothing that others have written is a command of a runner, leaves its output, or the block of a comment.
//
// Red without: stop-commands, log, gsub or "s/^/    /" in run.sh.
func TestAccPipeline_hostile(t *testing.T) {
	t.Parallel()
	stopped := regexp.MustCompile(`(?m)^::stop-commands::[\w-]{36}$`)
	for host, run := range hosts {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			r := startPipeline(t, 0)
			const hostile = `::add-mask::true\n##[add-mask]http\n\r::set-output name=pull_request::x\r# Heading @team\n\u001b[0Ksection_start:1:x\r\u001b[0K\n::stop-commands::x`
			main := strings.Replace(r.files["agent/main.tf"], reference, hostile, 1)
			main = strings.Replace(main, `"api-reference"`, "\"::add-mask::a\\npull_request=x ##[add-mask]completed `@team`\"", 1)
			main += "output \"any\" {\n  value = agent_job.reference.prompt\n}\n" +
				"check \"any\" {\n  assert {\n    condition     = agent_job.reference.pr_link == null\n    error_message = \"" + hostile + "\"\n  }\n}\n"
			r.files["agent/main.tf"] = main
			for _, event := range []string{"pull_request", "push"} {
				r.on(event)
				text, ok := run(r)
				isStopped := strings.HasPrefix(text, "::stop-commands::") && len(stopped.FindAllString(text, -1)) == 2 // first in each step
				if !ok || host == "GitHub" && !isStopped || strings.Contains(text, "\x1b") {
					t.Errorf("green: %t, commands of GitHub's runner stopped: %t\n%s", ok, isStopped, text)
				}
				got := r.host.outputs
				if outcome := map[string]string{"pull_request": "planned", "push": "pull_request"}[event]; len(got) != 5 || got["outcome"] != outcome ||
					event == "push" && !strings.HasSuffix(got["message"], "completed, "+got["pull_request"]) || strings.ContainsAny(got["message"], "#`@") {
					t.Errorf("outputs: %q", got)
				}
				for _, line := range strings.Split(strings.ReplaceAll(r.host.comment, "\r", "\n"), "\n")[1:] {
					if !regexp.MustCompile(`^(    |\*\*Documentation agent:\*\* |\[Run\]|$)`).MatchString(line) {
						t.Errorf("a line of the comment: %q", line)
					}
				}
			}
		})
	}
}

// A pull request is over only if that is known.
//
// Red without: --location, or a state that is not known taken for over.
func TestPulls(t *testing.T) {
	t.Parallel()
	r := newRunner(t, new(trial))
	pulls := r.values["GITHUB_API_URL"] + "/repos/example/docs/pulls/"
	r.host.pulls = map[string]string{"1": "closed", "2": "merged", "3": "locked", "4": "null", "5": pulls + "1"}
	for link, isOver := range map[string]bool{
		"https://github.com/example/docs/pull/1":             true,
		"https://github.com/example/docs/pull/2":             true,
		"https://github.com/example/docs/pull/3":             true,
		"https://github.com/example/docs/pull/4":             false, // no state that is known
		"https://github.com/example/docs/pull/5":             true,  // its repository was renamed
		"https://github.com/example/docs/pull/9":             false, // open
		"https://github.com/example/docs/pull/1/files":       false,
		"https://github.com/elsewhere/docs/pull/1":           false, // which the token cannot read
		"https://github.com.example/example/docs/pull/1":     false,
		"https://github.com/example/docs/-/merge_requests/1": true, // as on GitLab
		"https://gitlab.com/example/docs/-/merge_requests/1": false,
	} {
		if text, ok := r.runSh("is_over " + link); ok != isOver {
			t.Errorf("%s is over: %t\n%s", link, ok, text)
		}
	}
}

// A run is cut short while it waits, and the next one gets a fresh checkout. Before, while the state has the lock of a run that was
// killed, and afterwards, a pull request only plans.
//
// Red without: exec in agent.yml, -lock=false, or the journal, because the next run sends again then.
func TestAccPipeline_cutShort(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		host   string
		signal syscall.Signal
	}{
		"GitHub, lost":      {"GitHub", syscall.SIGKILL},
		"GitHub, cancelled": {"GitHub", syscall.SIGINT},
		"GitLab, lost":      {"GitLab", syscall.SIGKILL},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startPipeline(t, time.Hour)
			isLost, run := test.signal == syscall.SIGKILL, hosts[test.host]
			planOnly := func(shows string) {
				t.Helper()
				before := string(r.host.state)
				r.on("pull_request")
				if text, ok := run(r); !ok || !strings.Contains(text, shows) || string(r.host.state) != before {
					t.Errorf("green: %t, or it does not show %q, or it has changed the state:\n%s", ok, shows, text)
				}
				r.on("push")
			}
			r.kill = test.signal
			if text, ok := run(r); ok {
				t.Fatal(text)
			}
			r.kill = 0
			if isLost {
				planOnly("1 to add")
				r.host.lock = nil // terraform force-unlock
			}
			r.service.SetStatus(r.service.Jobs()[0].ID, "completed")
			text, ok := run(r)
			if !ok || r.host.outputs["outcome"] != "pull_request" || isLost != strings.Contains(text, "Agent job adopted") {
				t.Errorf("green: %t, or the adoption is missing or wrong:\n%s", ok, text)
			}
			planOnly("No changes") // the journal has records
			r.expect([]string{reference})
			if counts := r.service.Counts(); counts.Create+counts.Message != 1 {
				t.Errorf("not one POST: %+v", counts)
			}
		})
	}
}

// The pull request of a release is merged if it is one of the repository.
//
// Red without: the check of the link, or its anchors.
func TestRelease(t *testing.T) {
	t.Parallel()
	const link = "https://github.com/example/docs/pull/1"
	for link, isMerged := range map[string]bool{
		link:                                     true,
		"https://GitHub.com/Example/docs/pull/1": true,
		"":                                       false, // more than one
		"https://github.com/other/docs/pull/1":   false,
		"https://github.com.example/example/docs/pull/1": false,
		link + "/../../../../other/docs/pull/1":          false,
		"x " + link:                                      false,
		link + "\n--admin":                               false,
		"--admin":                                        false,
	} {
		r := newRunner(t, new(trial))
		r.checkout()
		maps.Copy(r.values, map[string]string{
			"MERGE_TOKEN": "merge", "server_url": "https://github.com", "repository": "example/docs", "pull_request": link,
		})
		r.tool("gh", `echo "$GH_TOKEN $*" >>calls`)
		_, ok := r.job(recipes+"release.yml", "merge")
		calls, _ := os.ReadFile(r.dir + "/calls")
		want := map[bool]string{true: "merge pr merge " + link + " --squash --auto\n"}[isMerged]
		if ok != isMerged || string(calls) != want {
			t.Errorf("%q: green: %t, calls: %s", link, ok, calls)
		}
	}
}
