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
	caller    = pipelines + "github.yml"
	reference = "Bring the API reference up to date with openapi.yaml"

	openapi = "openapi: 3.1.0\npaths:\n  /a: { get: { summary: A } }\n"
)

// hosts are those that the pipelines run on.
var hosts = map[string]func(r *runner, caller string) (text, failed string){"GitHub": (*runner).github, "GitLab": (*runner).gitlab}

// A change of a documentation on each host: it is planned, merged, changed again, fails, and is repaired.
//
// Red without: is_open, changed, -lock=false or the marker in run.sh; paths in main.tf.
func TestAccPipeline(t *testing.T) {
	t.Parallel()
	for name, run := range hosts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startPipeline(t, 0)
			link := func(n int) string { return fmt.Sprintf("https://github.com/example/docs/pull/%d", n) }
			if name == "GitLab" { // the state is GitLab's, without a journal, and so are the pull requests
				delete(r.with, "backend")
				r.env, r.values["var.CI_SERVER_URL"] = nil, "https://gitlab.com"
				link = func(n int) string { return fmt.Sprintf("https://gitlab.com/example/docs/-/merge_requests/%d", n) }
				r.with["url"] = r.rewritten(strings.NewReplacer("github.com/example/docs/pull/", "gitlab.com/example/docs/-/merge_requests/"))
			}
			jobs, forget := [][]string{}, regexp.MustCompile(`AGENT_JOURNAL_FORGET=(\w+)`)
			var text, failed string
			for _, step := range []struct {
				name, prompt, api, closed string
				isPull, fails, retries    bool
				changed                   string
				comment                   string // in the end
				job                       int    // that gets the prompt, from 1; 0: none
			}{
				{name: "pull request", isPull: true, changed: "false", comment: "Plan: 1 to add"},
				{name: "second push to it", isPull: true, changed: "false", comment: "Plan: 1 to add"},
				{name: "merge", changed: "true", comment: "documentation: completed, " + link(1), job: 1},
				{name: "no change, but line ends and descriptions", api: strings.ReplaceAll("# New\n"+openapi, "\n", "\r\n"), changed: "false", comment: link(1)},
				{name: "prompt, while its pull request is open", prompt: "Shorten it [simulate: 2s]", changed: "true", comment: "1 to change", job: 1},
				{name: "prompt, once it is closed", prompt: "Translate it", closed: "1", changed: "true", comment: link(2), job: 2},
				{name: "path", prompt: "Translate it", api: openapi + "  /b: {}\n", changed: "true", comment: link(2) + " belongs to the job before", job: 3},
				{name: "failure", prompt: "Break it [simulate: failed]", api: openapi, closed: "3", fails: true, changed: "false", comment: "Failed", job: 4},
				{name: "a re-run", prompt: "Break it [simulate: failed]", api: openapi, fails: true, changed: "false", comment: "Failed"},
				{name: "a retry", prompt: "Break it [simulate: failed]", api: openapi, retries: true, fails: true, changed: "false", comment: "Failed", job: 5},
				{name: "repair", prompt: "Repair it", api: openapi, changed: "true", comment: link(6), job: 6},
			} {
				r.push("main")
				if step.isPull {
					r.pull(thePull)
				}
				r.host.isClosed[step.closed] = true
				r.files = map[string]string{"openapi.yaml": openapi}
				if step.api != "" {
					r.files["openapi.yaml"] = step.api
				}
				if r.with["prompt"] = reference; step.prompt != "" {
					r.with["prompt"] = step.prompt
				}
				r.values["inputs.forget"], r.values["var.TF_CLI_ARGS_plan"] = "", ""
				if id := forget.FindStringSubmatch(text); step.retries && id != nil {
					r.values["inputs.forget"] = id[1]
				} else if step.retries { // the journal is gone, so the error names -replace instead
					r.values["var.TF_CLI_ARGS_plan"] = "-replace=agent_job.this"
				}
				text, failed = run(r, caller)
				if step.job > len(jobs) {
					jobs = append(jobs, nil)
				}
				if step.job > 0 {
					jobs[step.job-1] = append(jobs[step.job-1], r.with["prompt"])
				}
				var sent [][]string
				for _, job := range r.service.Jobs() {
					sent = append(sent, job.Prompts)
				}
				comments := r.host.comments
				if len(comments) != 1 || !strings.Contains(comments[0], step.comment) || (failed != "") != step.fails || r.values["needs.agent.outputs.changed"] != step.changed {
					t.Fatalf("%s: %q failed, changed is %q, and the comment lacks %q: %q\n%s", step.name, failed, r.values["needs.agent.outputs.changed"], step.comment, comments, text)
				}
				if diff := gocmp.Diff(jobs, sent); len(jobs) > 0 && diff != "" {
					t.Fatalf("%s: prompts of the jobs (-want +got):\n%s\n%s", step.name, diff, text)
				}
			}
		})
	}
}

// rewritten is the service with other links, and returns its address.
func (r *runner) rewritten(links *strings.Replacer) string {
	r.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		got := httptest.NewRecorder()
		r.service.ServeHTTP(got, request)
		w.WriteHeader(got.Code)
		_, _ = links.WriteString(w, got.Body.String())
	}))
	r.Cleanup(server.Close)
	return server.URL
}

// The recipes for GitHub, each played as often as its values: the next one starts another job, or none.
func TestAccRecipes(t *testing.T) {
	t.Parallel()
	const files = "Bring the pages about the sdk up to date with these files.\n\nThe files:\n- sdk/a.py\n- sdk/b.py"
	for recipe, test := range map[string]struct {
		event  string // an expression, or a file, that differs between runs
		values []string
		want   [][]string
	}{
		"schedule": {"github.run_id", []string{"101", "102"}, [][]string{{"Correct the spelling in the API reference"}, {"Correct the spelling in the API reference"}}},
		"files":    {"sdk/a.py", []string{"pass\n", "pass\r\n", "def get(): pass\n"}, [][]string{{files}, {files}}},
		"projects": {"matrix.project", []string{"proj_123", "proj_456"}, [][]string{{"Correct the spelling on all pages"}, {"proj_456: Correct the spelling on all pages"}}},
	} {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			r := startPipeline(t, 0)
			r.values["matrix.group"] = "sdk"
			r.files = map[string]string{"sdk/a.py": "pass\n", "sdk/b.py": "\xff"}
			for _, value := range test.values {
				r.values[test.event] = value
				if r.files[test.event] != "" {
					r.files[test.event] = value
				}
				if test.event == "matrix.project" {
					r.with["backend"] = fmt.Sprintf("backend \"local\" {\n  path = %q\n}", r.origin+value+".tfstate")
				}
				if text, failed := r.github(recipes + recipe + ".yml"); failed != "" || !strings.Contains(text, "completed, https://github.com/example/docs/pull/") {
					t.Fatalf("%s failed:\n%s", failed, text)
				}
			}
			r.expect(test.want...)
		})
	}
}

// Without a backend, the summary says what follows. With a folder, a prompt has the output of another resource. The
// plan of a pull request sends the key to no service that the pull request names.
//
// Red without: isElsewhere in internal/provider; AGENT_BASE_URL in the pipelines.
func TestAccPipeline_inputs(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(other.Close)
	for name, test := range map[string]struct{ directory, more, pull, failed, shows, prompt string }{
		"no backend": {shows: "No backend is set", prompt: reference},
		"directory":  {directory: "docs", shows: "queue: completed", prompt: "Document that orders are now at https://queue.example.com/orders"},
		"other URL": {
			"docs", fmt.Sprintf("\nprovider \"agent\" {\n  base_url = %q\n}\n\ndata \"agent_job\" \"any\" {\n  id = \"job_1\"\n}\n", other.URL), thePull,
			"Plan", "base_url is not the URL in the environment variable AGENT_BASE_URL", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startPipeline(t, 0)
			if test.pull != "" {
				r.pull(test.pull)
			}
			delete(r.with, "backend")
			r.with["directory"] = test.directory
			r.files = map[string]string{"openapi.yaml": openapi, "docs/main.tf": read(t, recipes+"output.tf") + test.more}
			text, failed := r.github(caller)
			if failed != test.failed || !strings.Contains(text, test.shows) || requests.Load() > 0 {
				t.Errorf("%q failed, and the other service received %d requests:\n%s", failed, requests.Load(), text)
			}
			if test.prompt != "" {
				r.expect([]string{test.prompt})
			}
		})
	}
}

// A release waits until its documentation is merged, with stand-ins for gh and sleep.
//
// Red without: the check of the link in the recipe.
func TestAccRelease(t *testing.T) {
	t.Parallel()
	r := startPipeline(t, 0)
	const recipe, check, merge = recipes + "release.yml", "Check the link", "Merge it once its branch allows it"
	for range 2 { // the second run changes nothing, and still has the link
		if text, failed := r.github(recipe); failed != "" || r.values["needs.agent.outputs.pull_request"] != r.service.Jobs()[0].PullRequest {
			t.Fatalf("%q failed, outputs %q:\n%s", failed, r.values["needs.agent.outputs.pull_request"], text)
		}
	}
	r.expect([]string{"Document what is new in v1"})
	r.tool("sleep", "")
	r.tool("gh", "echo \"$GH_TOKEN $*\" >>calls\ncase \"$2\" in\nview) sed -n 1p states; grep -q . states && sed -i 1d states ;;\nmerge) ! grep -q OPEN states ;;\nesac\n")
	r.values["secrets.MERGE_TOKEN"] = "merge"
	link := "https://github.com/example/docs/pull/1"
	for _, test := range []struct{ link, states, failed string }{ // one by one; without another one, gh fails
		{link, "OPEN\nOPEN\nMERGED\n", ""},
		{link, "OPEN\nCLOSED\n", merge},
		{link, "OPEN\n", merge},
		{"https://github.com/other/docs/pull/1", "", check},
		{"https://github.com.example/example/docs/pull/1", "", check},
		{link + "/../../../../other/docs/pull/1", "", check},
		{"x " + link, "", check},
		{link + "\n--admin", "", check},
		{"--admin", "", check},
	} {
		r.values["needs.agent.outputs.pull_request"] = test.link
		r.write("states", test.states)
		r.write("calls", "")
		failed := r.githubNext(recipe, "merged")
		calls, err := os.ReadFile(r.dir + "/calls")
		want := ""
		if test.failed != check {
			want = "merge pr edit " + link + " --add-label documentation --add-reviewer example/writers\n" +
				strings.Repeat("merge pr view "+link+" --json state --jq .state\nmerge pr merge "+link+" --squash\n", strings.Count(test.states, "OPEN")) +
				"merge pr view " + link + " --json state --jq .state\n"
		}
		if diff := gocmp.Diff(want, string(calls)); failed != test.failed || err != nil || diff != "" {
			t.Errorf("%+v: %q failed, %v, calls (-want +got):\n%s", test, failed, err, diff)
		}
	}
	r.write("calls", "")
	failed := r.githubNext(recipe, "release")
	if calls, _ := os.ReadFile(r.dir + "/calls"); failed != "" || string(calls) != "token release create v1 --verify-tag --generate-notes\n" {
		t.Errorf("%q failed: %s", failed, calls)
	}
}

// What is told to Slack and an issue, with stand-ins for curl and gh.
func TestNotify(t *testing.T) {
	onLinux(t)
	r := &runner{trial: &trial{T: t, dir: t.TempDir()}, bin: t.TempDir(), values: map[string]string{
		"needs.agent.outputs.message": `documentation: completed, "x"`, "secrets.SLACK_WEBHOOK_URL": "https://hooks.example.com/1", "github.token": "token", "github.repository": "example/docs",
	}}
	r.tool("curl", "{ echo \"$*\"; cat; } >>calls\n")
	r.tool("gh", "echo \"$*\" >>calls\n")
	failed := r.githubNext(recipes+"notify.yml", "notify")
	calls, _ := os.ReadFile(r.dir + "/calls")
	want := "--fail --silent --show-error --json @- https://hooks.example.com/1\n{\n  \"text\": \"documentation: completed, \\\"x\\\"\"\n}\n" +
		"issue comment 12 --body documentation: completed, \"x\"\n"
	if diff := gocmp.Diff(want, string(calls)); failed != "" || diff != "" {
		t.Errorf("%q failed: %s", failed, diff)
	}
}

// What is merged is sent, without the commits of the agent. What is empty, too large, or unknown to Git is not.
//
// Red without: the author, the limit, or merge-base in run.sh, which sends the reverse of what a forced push removed.
func TestAccMerged(t *testing.T) {
	t.Parallel()
	r := startPipeline(t, 0)
	workspace, nothing, unknown := r.dir, "Nothing to send", "No history from the commit"
	r.clone = t.TempDir()
	for _, step := range []struct{ author, file, text, before, failed, shows string }{
		{"somebody", "page.txt", "old\n", strings.Repeat("0", 40), "Prepare", unknown},
		{"mintlify[bot]", "page.txt", "by the agent\n", "", "", nothing},
		{"somebody", "docs/page.md", "by a person\n", "", "", nothing},
		{"somebody", "page.txt", "new\n\xff\n", "", "", "completed"},
		{"", "", "", "HEAD~1", "", "No changes"}, // a re-run
		{"somebody", "large.txt", strings.Repeat("x", 200_000) + "\n", "", "Prepare", "too large"},
		{"force", "third.txt", "third [simulate: 2s]\n", "", "Prepare", unknown}, // without 2s, the message waits a minute
		{"", "", "", "HEAD~4", "", "1 changed"},
	} {
		r.dir, r.values["github.event.before"] = r.clone, cmp.Or(step.before, r.values["github.sha"])
		if step.author == "force" {
			r.git("reset", "-q", "--hard", "HEAD~1")
		}
		if step.author != "" {
			r.write(step.file, step.text)
			r.commit("Merge")
			r.git("commit", "-q", "--amend", "--author", step.author+" <x@example.com>", "-m", "Merge")
			r.values["github.sha"] = r.git("rev-parse", "HEAD")
		}
		r.dir = workspace
		if text, failed := r.github(recipes + "merged.yml"); failed != step.failed || !strings.Contains(text, step.shows) {
			t.Fatalf("%q failed, want %q:\n%s", failed, step.failed, text)
		}
	}
	var got []string
	for _, prompt := range r.service.Jobs()[0].Prompts {
		got = append(got, strings.Join(regexp.MustCompile(`(?m)^[+-]\w+`).FindAllString(prompt, -1), " "))
	}
	if diff := gocmp.Diff([]string{"-by +new", "-by +new +third"}, got); diff != "" {
		t.Errorf("changes that were sent (-want +got):\n%s", diff)
	}
}

// A run is cut short while it waits, and the next one gets a fresh checkout, and the bucket as it is, with the lock of a
// run that was killed. Meanwhile and afterwards, a pull request only plans, and its role cannot write.
//
// Red without: the journal, because the next run sends again then; -lock=false; a role that plans what is applied.
func TestAccStores_cutShort(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		host   string
		signal syscall.Signal
	}{
		"GitHub, lost":      {"GitHub", syscall.SIGKILL},
		"GitHub, cancelled": {"GitHub", syscall.SIGINT}, // Red without: exec
		"GitLab, lost":      {"GitLab", syscall.SIGKILL},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startPipeline(t, time.Hour)
			r.useBucket()
			r.files["openapi.yaml"] = openapi
			isLost, run := test.signal == syscall.SIGKILL, hosts[test.host]
			planOnly := func(shows string) {
				t.Helper()
				pull, before, sent := *r, r.bucket.objects(), r.service.Counts()
				pull.trial, pull.values, pull.kill, pull.meanwhile = new(*r.trial), maps.Clone(r.values), 0, nil
				pull.dir = t.TempDir() + "/workspace"
				pull.values["github.workspace"], pull.values["var.CI_PROJECT_DIR"] = pull.dir, pull.dir
				pull.pull(thePull)
				if text, failed := run(&pull, caller); failed != "" || !strings.Contains(text, shows) {
					t.Errorf("%q failed, or does not show %q:\n%s", failed, shows, text)
				}
				counts := r.service.Counts()
				counts.Get = sent.Get
				if diff := gocmp.Diff([]any{before, sent}, []any{r.bucket.objects(), counts}); diff != "" {
					t.Errorf("a plan changed the bucket, or sent (-before +after):\n%s", diff)
				}
			}
			r.kill, r.meanwhile = test.signal, func() { planOnly("1 to add") }
			if text, failed := run(r, caller); strings.ToLower(failed) != "apply" {
				t.Fatalf("%q failed:\n%s", failed, text)
			}
			r.kill = 0
			r.service.SetStatus(r.service.Jobs()[0].ID, "completed")
			if isLost {
				agent := r.dir + map[string]string{"GitHub": "-agent", "GitLab": "/.agent"}[test.host]
				env := append(r.bucket.assume("agent-apply").env(), "TF_CLI_CONFIG_FILE="+agent+"/mirror.tfrc")
				lock := regexp.MustCompile(`"ID":"([^"]+)`).FindStringSubmatch(fmt.Sprint(r.bucket.objects()))
				if text, ok := r.bash("terraform -chdir='"+agent+"-work' force-unlock -force "+lock[1], env); !ok {
					t.Fatal(text)
				}
			}
			text, failed := run(r, caller)
			if failed != "" || !strings.Contains(text, "documentation: completed, https://") || isLost != strings.Contains(text, "Agent job adopted") {
				t.Errorf("%q failed, or the adoption is missing or wrong:\n%s", failed, text)
			}
			planOnly("No changes") // the journal has records
			r.expect([]string{reference})
			if counts := r.service.Counts(); counts.Create+counts.Message != 1 {
				t.Errorf("not one POST: %+v", counts)
			}
		})
	}
}

// Where GitLab keeps the state alone, the first apply stores the job's id, and the second one waits and is killed.
func TestAccTwoApplies(t *testing.T) {
	t.Parallel()
	r := startPipeline(t, time.Hour)
	delete(r.with, "backend")
	r.env, r.files["openapi.yaml"] = nil, openapi
	for _, r.kill = range []syscall.Signal{syscall.SIGKILL, 0} {
		if text, failed := r.gitlab(""); (failed == "") != (r.kill == 0) || !strings.Contains(text, "keeps no journal") {
			t.Fatalf("%q failed:\n%s", failed, text)
		}
		r.service.SetStatus(r.service.Jobs()[0].ID, "completed")
	}
	r.expect([]string{reference})
}
