// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	reference = "Bring the API reference up to date with openapi.yaml."

	openapi = "openapi: 3.1.0\npaths:\n  /a: { get: { summary: A } }\n"
)

// hosts are those that the pipelines run on.
var hosts = map[string]func(r *runner, caller string) (text, failed string){"GitHub": (*runner).github, "GitLab": (*runner).gitlab}

// A change of a documentation on each host: it is planned, merged, changed again, fails, and is repaired.
//
// Red without: is_over, is_rerun, changed, -lock=false or the marker in run.sh.
func TestAccPipeline(t *testing.T) {
	t.Parallel()
	for name, run := range hosts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startPipeline(t, 0)
			link := func(n int) string { return fmt.Sprintf("https://github.com/example/docs/pull/%d", n) }
			if name == "GitLab" { // so are the pull requests
				r.values["var.CI_SERVER_URL"] = "https://gitlab.com"
				link = func(n int) string { return fmt.Sprintf("https://gitlab.com/example/docs/-/merge_requests/%d", n) }
				r.configure(r.rewritten(strings.NewReplacer("github.com/example/docs/pull/", "gitlab.com/example/docs/-/merge_requests/")), r.values["github.api_url"])
			}
			main := r.files["agent/main.tf"]
			jobs, forget := [][]string{}, regexp.MustCompile(`AGENT_JOURNAL_FORGET=(\w+)`)
			var text, failed string
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
				r.with["rule"] = map[string]string{"tag": `$CI_PIPELINE_SOURCE == "push"`}[step.on]
				r.host.pulls[step.closed] = "closed"
				r.host.head, r.host.isRetried, r.values["github.run_attempt"] = "5f7079d", step.isRerun, map[bool]string{false: "1", true: "2"}[step.isRerun]
				if step.head != "" {
					r.host.head = strings.Trim(step.head, "-")
				}
				prompt := reference
				if step.prompt != "" {
					prompt = step.prompt
				}
				r.files["agent/main.tf"], r.files["openapi.yaml"] = strings.Replace(main, reference, prompt, 1), openapi
				if step.api != "" {
					r.files["openapi.yaml"] = step.api
				}
				r.values["inputs.forget"], r.values["var.AGENT_JOURNAL_FORGET"] = "", ""
				if step.forgets {
					id := forget.FindStringSubmatch(text)[1]
					r.values["inputs.forget"], r.values["var.AGENT_JOURNAL_FORGET"] = id, id
				}
				text, failed = run(r, caller)
				if step.job > len(jobs) {
					jobs = append(jobs, nil)
				}
				if step.job > 0 {
					jobs[step.job-1] = append(jobs[step.job-1], prompt)
				}
				r.expect(slices.SortedFunc(slices.Values(jobs), slices.Compare)...)
				links := `["` + r.host.outputs["pull_request"] + `"]`
				if r.host.outputs["pull_request"] == "" {
					links = "[]"
				}
				want := map[string]string{
					"outcome": step.outcome, "changed": fmt.Sprint(step.changed == "true"), "pull_requests": links,
					"message": r.host.outputs["message"], "pull_request": r.host.outputs["pull_request"],
				}
				if diff := gocmp.Diff(want, r.host.outputs); diff != "" || (failed != "") != (step.outcome == "failed") || t.Failed() {
					t.Fatalf("%s: %q failed, outputs (-want +got):\n%s\n%s", step.name, failed, diff, text)
				}
				if len(r.host.comments) != 1 || !strings.Contains(r.host.comments[0], step.comment) {
					t.Fatalf("%s: not one comment with %q: %q\n%s", step.name, step.comment, r.host.comments, text)
				}
			}
			t.Logf("POSTs: %+v", r.service.Counts())
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

// What a run may not do is said in one sentence, and reaches no service. Only plans are green then. What became of the jobs is
// told apart: a condition is no job, one of a module is, and a committed lock file or errored.tfstate is not this run's. A state
// that the backend refused once is stored by the report. One that it refuses again is kept if nobody else can read it.
//
// Red without: any condition of run, any branch of outcome, .values, .terraform.lock.hcl, rm -f, push or visibility in run.sh;
// isElsewhere in internal/provider; in agent.yml, AGENT_BASE_URL, or HAS_KEY, because a fork gets no role.
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
	noKey := func(r *runner) { r.values["secrets.AGENT_ADMIN_KEY"], r.values["vars.AWS_ROLE_ARN"] = "", "x" }
	limit := func(r *runner) { r.values["vars.AGENT_MAX_NEW_JOBS"], r.values["var.AGENT_MAX_NEW_JOBS"] = "0", "0" }
	backend := func(text string) func(r *runner) {
		return func(r *runner) { edit(r, stateHere.FindString(r.files["agent/main.tf"]), text) }
	}
	refuse := func(times int, isPublic bool) func(r *runner) {
		return func(r *runner) {
			r.host.refuse = times
			if isPublic {
				r.event["repository"], r.values["var.CI_PROJECT_VISIBILITY"] = map[string]any{"private": false}, "internal"
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
		"limit":                {change: limit, outcome: "failed", says: "Failed"},
		"no backend":           {change: backend(""), outcome: "failed", says: "the configuration in agent has no backend that outlives this run"},
		"backend on this disk": {change: backend("backend \"local\" {\n  path = \"x.tfstate\"\n}\n"), outcome: "failed", says: "has no backend"},
		"another service": {on: "pull_request", outcome: "failed", says: "Failed", change: func(r *runner) {
			edit(r, r.values["vars.AGENT_BASE_URL"], elsewhere.URL)
			r.files["agent/main.tf"] += "data \"agent_job\" \"any\" {\n  id = \"job_1\"\n}\n"
			r.values["var.AGENT_BASE_URL"] = r.values["vars.AGENT_BASE_URL"]
		}},

		"two jobs": {host: "GitHub", change: with(reference, second), outcome: "pull_request", says: "completed, " + link, links: link + `1","` + link + "2", creates: 2},
		"nothing changed": {
			host: "GitHub", change: with("x [simulate: no-pull-request]", ""), outcome: "no_pull_request", says: "api-reference: completed, no pull request", creates: 1,
		},
		"one of two": {
			host: "GitHub", change: with("x [simulate: no-pull-request]", second), outcome: "pull_request",
			says: "api-reference: completed, no pull request; second: completed, " + link, links: link, creates: 2,
		},
		"refused link": {host: "GitHub", outcome: "link_refused", says: "completed, its link was refused", creates: 1, change: func(r *runner) {
			r.configure(r.rewritten(strings.NewReplacer("/pull/", "/pull?a&b=")), r.values["github.api_url"])
		}},
		"archived": {host: "GitHub", change: with("x [simulate: archived]", ""), outcome: "archived", says: "api-reference: archived", creates: 1},
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
				if test.on == "schedule" {
					r.with["rule"] = `$CI_PIPELINE_SOURCE == "schedule"`
				}
				if test.change != nil {
					test.change(r)
				}
				edit(r, "  timeouts {", "  lifecycle {\n    postcondition {\n      condition     = self.id != null\n      error_message = \"x\"\n    }\n  }\n  timeouts {")
				r.files["agent/second/main.tf"] = "terraform {\n  required_providers {\n    agent = { source = \"agentjobs/agent\" }\n  }\n}\n" +
					"resource \"agent_job\" \"this\" {\n  name   = \"second\"\n  prompt = \"Second\"\n}\n"
				r.files["agent/.terraform.lock.hcl"] = "provider \"registry.terraform.io/agentjobs/agent\" {\n  version = \"0.1.0\"\n  hashes = [\n    \"h1:x\",\n  ]\n}\n"
				r.files["agent/errored.tfstate"] = `{"version":4,"serial":9}`   // that somebody has committed
				for range 1 + map[string]int{"link_refused": 1}[test.outcome] { // the second run changes nothing, and tells the same
					text, failed := run(r, caller)
					got, links := r.host.outputs, `["`+test.links
					if test.links == "" {
						links = "[]"
					}
					if (failed != "") != (test.outcome == "failed" || test.outcome == "archived") || got["outcome"] != test.outcome || !strings.Contains(got["message"], test.says) ||
						!strings.HasPrefix(got["pull_requests"], links) || (got["pull_request"] != "") != (strings.Count(got["pull_requests"], "http") == 1) {
						t.Fatalf("%q failed, outputs %q\n%s", failed, got, text)
					}
				}
				if counts := r.service.Counts(); counts.Create != test.creates || counts.Message != 0 || reached.Load() > 0 {
					t.Errorf("requests: %+v, elsewhere %d", counts, reached.Load())
				}
				if want := map[bool]string{true: "agent-plan", false: "agent-apply"}[test.outcome == "planned" || test.outcome == "skipped"]; test.outcome != "failed" && r.host.environment != want {
					t.Errorf("environment %q", r.host.environment)
				}
				isStored := test.creates > 0 && r.host.refuse == 0
				if (r.host.state != nil) != isStored || strings.Contains(r.host.kept, "agent_job") != test.isKept || (r.host.kept != "") != test.isKept {
					t.Errorf("state %q, kept %q", r.host.state, r.host.kept)
				}
			})
		}
	}
}

// runnerCommands are the lines that GitHub's runner takes for commands: "::" begins one after white space, "##["
// anywhere. It ends a line at a CR, too.
func runnerCommands(log string) (commands []string) {
	one := regexp.MustCompile(`^\s*::([\w-]+)[^:]*::(.*)|##\[([\w-]+)[^\]]*\](.*)`)
	stopped := ""
	for _, line := range regexp.MustCompile(`\r\n|\r|\n`).Split(log, -1) {
		switch parts := one.FindStringSubmatch(line); {
		case stopped != "" && strings.Contains(line, stopped):
			stopped = ""
		case parts == nil || stopped != "":
		case parts[1] == "stop-commands":
			stopped = parts[2]
		default:
			commands = append(commands, line)
		}
	}
	return commands
}

// Nothing that others have written is a command of a runner, leaves its output, or the block of a comment.
//
// Red without: stop-commands, log, gsub or "s/^/    /" in run.sh.
func TestAccPipeline_hostile(t *testing.T) {
	t.Parallel()
	for host, run := range hosts {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			r := startPipeline(t, 0)
			const hostile = `::add-mask::true\n##[add-mask]http\n\r::set-output name=pull_request::x\r# Heading @team\n\u001b[0Ksection_start:1:x\r\u001b[0K\n::stop-commands::x`
			main := strings.Replace(r.files["agent/main.tf"], reference, hostile, 1)
			main = strings.Replace(main, `"api-reference"`, "\"::add-mask::a\\npull_request=x ##[add-mask]completed `@team`\"", 1)
			main += "output \"any\" {\n  value = agent_job.reference.prompt\n}\ncheck \"any\" {\n  assert {\n    condition     = agent_job.reference.pr_link == null\n    error_message = \"" + hostile + "\"\n  }\n}\n"
			r.files["agent/main.tf"] = main
			for _, event := range []string{"pull_request", "push"} {
				r.on(event)
				text, failed := run(r, caller)
				if commands := runnerCommands(text); failed != "" || host == "GitHub" && len(commands) > 0 || strings.Contains(text, "\x1b") {
					t.Errorf("%q failed, commands %q\n%s", failed, commands, text)
				}
				got := r.host.outputs
				if outcome := map[string]string{"pull_request": "planned", "push": "pull_request"}[event]; len(got) != 5 || got["outcome"] != outcome ||
					event == "push" && !strings.HasSuffix(got["message"], "completed, "+got["pull_request"]) || strings.ContainsAny(got["message"], "#`@") {
					t.Errorf("outputs: %q", got)
				}
				for _, line := range strings.Split(strings.ReplaceAll(r.host.comments[0], "\r", "\n"), "\n")[1:] {
					if !regexp.MustCompile(`^(    |\*\*Documentation agent:\*\* |\[Run\]|$)`).MatchString(line) {
						t.Errorf("a line of the comment: %q", line)
					}
				}
			}
		})
	}
}

// A pull request is over only if that is known. The token reaches no host but the API's.
//
// Red without: --location, or a state that is not known taken for over.
func TestPulls(t *testing.T) {
	onLinux(t)
	var leaked string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { leaked += r.Header.Get("Authorization") }))
	t.Cleanup(other.Close)
	h := &host{pulls: map[string]string{"1": "closed", "2": "merged", "3": "locked", "4": "null"}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.pulls["5"], h.pulls["6"] = server.URL+"/repos/example/docs/pulls/1", server.URL+"/repos/example/docs/pulls/9"
	h.pulls["7"], h.pulls["8"] = server.URL+"/nowhere", other.URL+"/repos/example/docs/pulls/1"
	call := script(t, server.URL)
	for link, isOver := range map[string]bool{
		"https://github.com/example/docs/pull/1":             true,
		"https://github.com/example/docs/pull/2":             true,
		"https://github.com/example/docs/pull/3":             true,
		"https://github.com/example/docs/pull/4":             false, // no state that is known
		"https://github.com/example/docs/pull/5":             true,  // its repository was renamed
		"https://github.com/example/docs/pull/6":             false, // renamed, and open
		"https://github.com/example/docs/pull/7":             false, // renamed to nowhere
		"https://github.com/example/docs/pull/8":             false, // on another host
		"https://github.com/example/docs/pull/9":             false, // open
		"https://github.com/example/docs/pull/1/files":       false,
		"https://github.com/elsewhere/docs/pull/1":           false, // which the token cannot read
		"https://github.com.example/example/docs/pull/1":     false,
		"https://gitlab.com/example/docs/-/merge_requests/1": false,
	} {
		if text, ok := call("is_over", link); ok != isOver {
			t.Errorf("%s is over: %t\n%s", link, ok, text)
		}
	}
	if leaked != "" {
		t.Errorf("another host got %q", leaked)
	}
}

// script returns what calls a function of run.sh as on GitHub.
func script(t *testing.T, api string) func(args ...string) (text string, ok bool) {
	t.Helper()
	r := &runner{trial: &trial{T: t, dir: t.TempDir()}, values: map[string]string{"github.api_url": api, "github.server_url": "https://github.com", "github.repository": "example/docs"}}
	for _, name := range []string{"sha", "ref_name", "ref_type", "run_id", "event_name"} {
		r.values["github."+name] = "x"
	}
	file, err := filepath.Abs(root + "/examples/" + pipelines + "run.sh")
	if err != nil {
		t.Fatal(err)
	}
	r.write("agent-work/report.md", "A report")
	return func(args ...string) (string, bool) {
		return r.bash("bash '"+file+"' "+strings.Join(args, " "), append(r.githubEnv(t.TempDir()), "AGENT_DIR="+r.dir+"/agent", "TOKEN=token", "DIRECTORY=agent"))
	}
}

// The comment that a bot has written is updated, wherever it is, and no other. If they cannot be read, there is no second one.
//
// Red without: the pages, the user's type, or return, in comment of run.sh.
func TestComment(t *testing.T) {
	onLinux(t)
	const one, marker = `{"id": 1, "user": {"type": "User"}, "body": %q}`, "<!-- agent agent -->\nPlan"
	others := strings.Repeat(fmt.Sprintf(one, "Hello")+",", 99) + fmt.Sprintf(one, marker) // which a person has copied
	for name, test := range map[string]struct {
		pages []string
		want  string
	}{
		"none":           {[]string{"[]"}, "POST /repos/example/docs/issues/7/comments"},
		"a person's":     {[]string{"[" + others + "]", "[]"}, "POST /repos/example/docs/issues/7/comments"},
		"after a page":   {[]string{"[" + others + "]", `[{"id": 2, "user": {"type": "Bot"}, "body": "` + `<!-- agent agent -->"}]`}, "PATCH /repos/example/docs/issues/comments/2"},
		"cannot be read": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			written := ""
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				page, _ := strconv.Atoi(r.URL.Query().Get("page"))
				switch {
				case r.Method != http.MethodGet:
					written += r.Method + " " + r.URL.Path
				case page > len(test.pages):
					http.Error(w, "no", http.StatusBadGateway)
				default:
					_, _ = io.WriteString(w, test.pages[page-1])
				}
			}))
			t.Cleanup(server.Close)
			if text, ok := script(t, server.URL)("comment", "7"); written != test.want || ok != (test.want != "") {
				t.Errorf("%q, %t\n%s", written, ok, text)
			}
		})
	}
}

// Two applies at once send once, whether or not the host lets them wait for each other.
func TestAccPipeline_atOnce(t *testing.T) {
	t.Parallel()
	r := startPipeline(t, 3*time.Second)
	var both sync.WaitGroup
	for _, directory := range []string{"a", "b"} {
		both.Go(func() {
			other := r.beside(directory)
			if text, failed := other.github(caller); failed != "" && !strings.Contains(text, "Saved plan is stale") {
				t.Error(text)
			}
		})
	}
	both.Wait()
	if text, failed := r.github(caller); failed != "" || r.host.outputs["outcome"] != "pull_request" {
		t.Error(text)
	}
	r.expect([]string{reference})
}

// beside is another runner of the same repository.
func (r *runner) beside(name string) *runner {
	other := *r
	other.trial, other.values, other.kill, other.meanwhile = new(*r.trial), maps.Clone(r.values), 0, nil
	other.dir = r.TempDir() + "/" + name
	other.values["github.workspace"], other.values["var.CI_PROJECT_DIR"] = other.dir, other.dir
	return &other
}

// A run is cut short while it waits, and the next one gets a fresh checkout, with the lock of a run that was killed.
// Meanwhile and afterwards, a pull request only plans.
//
// Red without: exec in agent.yml, -lock=false, or the journal, because the next run sends again then.
func TestAccPipeline_cutShort(t *testing.T) { cutShort(t, false) }

// The same in a bucket, where the role that plans cannot write.
func TestAccStores_cutShort(t *testing.T) { cutShort(t, true) }

func cutShort(t *testing.T, inBucket bool) {
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
			stored := func() any { return r.host.stored() }
			if inBucket {
				r.useBucket()
				stored = func() any { return r.bucket.objects() }
			}
			isLost, run := test.signal == syscall.SIGKILL, hosts[test.host]
			planOnly := func(shows string) {
				t.Helper()
				pull, before, sent := r.beside("pull"), stored(), r.service.Counts()
				pull.on("pull_request")
				if text, failed := run(pull, caller); failed != "" || !strings.Contains(text, shows) {
					t.Errorf("%q failed, or does not show %q:\n%s", failed, shows, text)
				}
				counts := r.service.Counts()
				counts.Get = sent.Get
				if diff := gocmp.Diff([]any{before, sent}, []any{stored(), counts}); diff != "" {
					t.Errorf("a plan changed the state, or sent (-before +after):\n%s", diff)
				}
			}
			r.kill, r.meanwhile = test.signal, func() { planOnly("1 to add") }
			if text, failed := run(r, caller); failed == "" {
				t.Fatal(text)
			}
			r.kill = 0
			r.service.SetStatus(r.service.Jobs()[0].ID, "completed")
			if isLost {
				agent := r.dir + "-agent"
				env := []string{"TF_CLI_CONFIG_FILE=" + agent + "-work/mirror.tfrc"}
				lock := string(r.host.lock)
				if inBucket {
					env, lock = append(env, r.bucket.assume("agent-apply").env()...), fmt.Sprint(r.bucket.objects())
				}
				if text, ok := r.bash("terraform -chdir=agent force-unlock -force "+regexp.MustCompile(`"ID":"([^"]+)`).FindStringSubmatch(lock)[1], env); !ok {
					t.Fatal(text)
				}
			}
			text, failed := run(r, caller)
			if failed != "" || r.host.outputs["outcome"] != "pull_request" || isLost != strings.Contains(text, "Agent job adopted") {
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

// The pipelines pin a version of Terraform that the tests use.
func TestPinnedTerraform(t *testing.T) {
	version := regexp.MustCompile(`(?:terraform_version: |hashicorp/terraform:)([\d.]+)`)
	for _, file := range []string{"../.github/workflows/agent.yml", pipelines + "gitlab-template.yml"} {
		pinned := version.FindStringSubmatch(read(t, file))
		if pinned == nil || !strings.Contains(read(t, "../.github/workflows/test.yml"), `"`+pinned[1]+`"`) {
			t.Errorf("%s pins %q, which is not in test.yml", file, pinned)
		}
	}
}
