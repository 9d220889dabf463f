// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

const (
	pipelines = "guides/pipelines/"
	recipes   = "guides/recipes/"
	oneApply  = pipelines + "main.tf"
	reference = "Bring the API reference up to date"
)

func pipelineFiles() []string {
	files := []string{oneApply, recipes + "files.tf", recipes + "prompt.tf", recipes + "notify.yml", recipes + "review.yml"}
	for _, name := range []string{"two-applies.tf", "backend-s3.tf", "github-actions.yml", "push.yml", "gitlab-ci.yml"} {
		files = append(files, pipelines+name)
	}
	for _, name := range []string{"schedule", "release", "merged", "openapi"} {
		files = append(files, recipes+name+".tf", recipes+name+".yml")
	}
	return files
}

// configuration is the pipelines', with what a file has in place of its resource.
func configuration(t *testing.T, file string) string {
	t.Helper()
	text := read(t, oneApply)
	if file == oneApply {
		return text
	}
	setup, rest, _ := strings.Cut(text, "resource ")
	if text = setup + read(t, file); strings.Contains(text, `resource "agent_job"`) && strings.HasPrefix(file, recipes) {
		_, outputs, _ := strings.Cut(rest, "\n}\n")
		text += outputs
	}
	return text
}

// Each event starts a job, in a workflow with the recipe's configuration.
//
// Red without: triggers in a recipe. The next event sends nothing, or a message, then.
func TestAccRecipes(t *testing.T) {
	t.Parallel()
	const message = "Job completed: https://github.com/example/docs/pull/"
	const prompt = "Correct the spelling in the API reference"
	for recipe, test := range map[string]struct {
		event  string // an expression, file or text that differs between runs
		values []string
		want   [][]string
	}{
		"schedule": {"github.run_id", []string{"101", "101", "102"}, slices.Repeat([][]string{{prompt}}, 2)},
		"prompt": {
			prompt, []string{prompt, prompt, "Shorten the API reference"}, [][]string{{prompt}, {"Shorten the API reference"}},
		},
		"openapi": {"openapi.json", []string{"{}", `{"openapi": "3.1.0"}`}, slices.Repeat([][]string{{reference + " with openapi.json"}}, 2)},
	} {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			r := startPipeline(t, 0)
			for _, value := range test.values {
				r.checkout(recipes + recipe + ".tf")
				r.values[test.event] = value
				r.write("openapi.json", value)
				workflow := recipes + recipe + ".yml"
				if recipe == "prompt" {
					r.write("main.tf", strings.Replace(configuration(t, recipes+"prompt.tf"), prompt, value, 1))
					workflow = pipelines + "push.yml"
				}
				if text, failed := r.github(workflow); failed != "" || !strings.Contains(text, message) {
					t.Fatalf("%s failed:\n%s", failed, text)
				}
			}
			r.expect(test.want...)
		})
	}
}

// A changed file starts a job for its group alone.
//
// Red without: files in the module's triggers.
func TestAccFiles(t *testing.T) {
	t.Parallel()
	r := startPipeline(t, 0)
	for _, sdk := range []string{"pass", "pass", "def get(): pass"} {
		r.checkout(recipes + "files.tf")
		r.write("main.tf", withModule(r.trial, "files.tf"))
		r.write("files.tftpl", read(t, recipes+"files.tftpl"))
		r.write("cli/main.go", "package main")
		r.write("cli/run/run.go", "package run")
		r.write("sdk/client.py", sdk)
		if text, failed := r.github(pipelines + "push.yml"); failed != "" || !strings.Contains(text, "sdk: https://github.com/example/docs/pull/") {
			t.Fatalf("%q failed:\n%s", failed, text)
		}
	}
	cli := []string{"Bring the pages about the cli up to date with these files:\n- cli/main.go\n- cli/run/run.go\n"}
	sdk := []string{"Bring the pages about the sdk up to date with these files:\n- sdk/client.py\n"}
	r.expect(cli, sdk, sdk)
}

// What is done with the link of the pull request, with stand-ins for gh and sleep on PATH.
//
// Red without: the check of the link in the recipe; of the plan, whether this run has changed it.
func TestAccReview(t *testing.T) {
	t.Parallel()
	r := startPipeline(t, 0)
	const handedOn = "needs.agent.outputs.pull_request"
	var links []string
	for range 2 { // the second run changes nothing
		r.checkout(oneApply)
		r.write("message_override.tf", "output \"message\" {\n  value = \"Job [x](https://evil.example/?a=1)\\n::error::`$(id)` <b>@team !\"\n}\n")
		text, failed := r.github(recipes + "review.yml")
		if message := r.values["needs.agent.outputs.message"]; failed != "" || message != "Job xhttps://evil.example/?a=1::error::id bteam" || !strings.HasSuffix(text, message+" \n") {
			t.Fatalf("%q failed, message %q:\n%s", failed, message, text)
		}
		links = append(links, r.values[handedOn])
	}
	link := r.service.Jobs()[0].PullRequest
	if diff := cmp.Diff([]string{link, ""}, links); diff != "" {
		t.Errorf("links that are handed on (-want +got):\n%s", diff)
	}
	r.values["secrets.REVIEW_TOKEN"] = "token"
	first := "token pr edit " + link + " --add-label documentation --add-reviewer example/writers\ntoken pr merge " + link + " --auto --squash\n"
	view := "token pr view " + link + " --json state --jq .state\n"
	home := r.dir
	const check = "Check the link"
	for _, test := range []struct{ link, states, failed string }{ // one by one; without another one, gh fails
		{link, "OPEN\nOPEN\nMERGED\n", ""}, {link, "OPEN\nCLOSED\n", "Wait until it is merged"}, {link, "OPEN\n", "Wait until it is merged"},
		{"https://github.com/other/docs/pull/1", "", check}, {"https://github.com.example/example/docs/pull/1", "", check},
		{"https://github.com/example/docs/pull/1/../../../../other/docs/pull/1", "", check}, {"https://github.com/example/docs", "", check},
		{"x " + link, "", check}, {link + "\n--admin", "", check}, {link + ";id", "", check}, {link + "?a", "", check}, {"--admin", "", check}, {"1", "", check},
	} {
		r.values[handedOn] = test.link
		r.dir = r.bin
		r.write("sleep", "#!/bin/sh\n")
		r.write("gh", "#!/bin/sh\necho \"$GH_TOKEN $*\" >>calls\n[ \"$2\" != view ] || { sed -n 1p states; grep -q . states && sed -i 1d states; }\n")
		for _, name := range []string{"sleep", "gh"} {
			if err := os.Chmod(r.bin+"/"+name, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		r.dir = home
		r.write("states", test.states)
		r.write("calls", "")
		failed := r.githubNext(recipes+"review.yml", "review")
		calls, err := os.ReadFile(home + "/calls")
		want := first + strings.Repeat(view, strings.Count(test.states, "OPEN")+1)
		if test.failed == check {
			want = ""
		}
		if diff := cmp.Diff(want, string(calls)); failed != test.failed || err != nil || diff != "" {
			t.Errorf("%+v: %q failed, %v, calls (-want +got):\n%s", test, failed, err, diff)
		}
	}
}

// The plan of a pull request sends the key to no service that the pull request names.
//
// Red without: isElsewhere in internal/provider; AGENT_BASE_URL in the pipelines; a key in the provider block of main.tf.
func TestAccPullRequest_otherBaseURL(t *testing.T) {
	t.Parallel()
	r := startPipeline(t, 0)
	var requests atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(other.Close)
	r.values["github.event_name"], r.values["branch"] = "pull_request", "feature"
	change := fmt.Sprintf("provider \"agent\" {\n  base_url = %q\n}\n\ndata \"agent_job\" \"any\" {\n  id = \"job_1\"\n}\n", other.URL)
	r.checkout(oneApply)
	r.write("main.tf", strings.Replace(configuration(t, oneApply), "provider \"agent\" {}\n", change, 1))
	text, failed := r.github(pipelines + "push.yml")
	if failed != "Plan" || !strings.Contains(text, "base_url is not the URL in the environment variable AGENT_BASE_URL") || requests.Load() > 0 {
		t.Errorf("%q failed, and the other service received %d requests:\n%s", failed, requests.Load(), text)
	}
}

// Each merged change is sent, also after runs that GitHub dropped or that failed; what is too large or what Git cannot
// tell starts no job.
//
// Red without: documented in the recipe, which takes the commit before the push then; status in it, which moves it in a
// run that fails; since in triggers, because the change of a re-run is empty then; pipefail; the limit; merge-base, which sends the reverse of what a forced push removed.
func TestAccMerged(t *testing.T) {
	t.Parallel()
	r := startPipeline(t, 0)
	needs(t, "1.11.0", "1.11.0") // prompt_wo
	r.checkout(recipes + "merged.tf")
	repository := r.dir
	merge := func(file, text string) (commit string) {
		r.dir = repository
		r.write(file, text)
		r.values["github.event.before"] = r.values["github.sha"]
		r.values["github.sha"] = r.commit("Merge")
		return r.values["github.sha"]
	}
	run := func(want, shows string) {
		t.Helper()
		if text, failed := r.githubClone(repository, r.values["github.sha"], recipes+"merged.yml"); failed != want || !strings.Contains(text, shows) {
			t.Fatalf("%q failed, want %q:\n%s", failed, want, text)
		}
	}
	merge("page.txt", "old\n")
	for _, unknown := range []string{"", strings.Repeat("0", 40), "5f7079d000000000000000000000000000000000", r.values["github.sha"]} {
		r.values["github.event.before"] = unknown
		if run("Prepare", ""); r.service.Counts() != (simulator.Counts{}) {
			t.Fatalf("after %q: %+v", unknown, r.service.Counts())
		}
	}
	r.write("docs/page.md", "of the agent\n")
	first := merge("page.txt", "new\n\xff\n")
	run("", "Job completed")
	run("", "No changes") // a re-run

	merge("second.txt", "second\n") // its run waited, until the next one came
	if canInterrupt {
		merge("third.txt", "third [simulate: 1h]\n")
		r.kill = syscall.SIGINT
		run("Apply", "")
		run("Apply", "") // it resumes waiting, so the plan knows the job's id
		r.kill = 0
		r.service.SetStatus(r.service.Jobs()[1].ID, "archived")
	}
	merge("third.txt", "third [simulate: failed]\n")
	run("Apply", "Agent job failed")
	merge("third.txt", "third\n")
	run("", "Job completed")

	merge("large.txt", strings.Repeat("x", 200_000)+"\n")
	run("Prepare", " is too large.")

	r.dir = repository
	r.git("reset", "-q", "--hard", first) // a forced push follows
	merge("fourth.txt", "fourth\n")
	run("Prepare", "")
	r.values["github.event.inputs.since"] = first
	run("", "Job completed")

	var got []string
	for _, job := range r.service.Jobs() {
		var lines []string
		for line := range strings.Lines(strings.Join(job.Prompts, "\nmessage\n")) {
			if regexp.MustCompile(`^([+-]\w|message)`).MatchString(line) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		got = append(got, strings.Join(lines, " "))
	}
	want := []string{"-old +new", "+second +third [simulate: 1h]", "+second +third [simulate: failed]", "+second +third", "+fourth"}
	if !canInterrupt {
		want = slices.Delete(want, 1, 2)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes that were sent (-want +got):\n%s", diff)
	}
}

// A release whose run was dropped is named by the next one.
//
// Red without: documented in the recipe.
func TestAccReleases(t *testing.T) {
	t.Parallel()
	r := startPipeline(t, 0)
	r.checkout(recipes + "release.tf")
	repository := r.dir
	for _, release := range []string{"v1", "v2", "v10"} {
		r.write("version", release)
		r.commit("Release")
		r.git("tag", release)
	}
	for _, run := range []struct{ release, failed string }{{"v1", ""}, {"v10", ""}, {"v10", ""}, {"v1", "Prepare"}} { // the last two are re-runs
		r.values["github.ref_name"] = run.release
		if text, failed := r.githubClone(repository, run.release, recipes+"release.yml"); failed != run.failed {
			t.Fatalf("%s: %q failed:\n%s", run.release, failed, text)
		}
	}
	r.expect([]string{"Update the API reference for v1"}, []string{"Update the API reference for v2, v10"})
}

// What is done with the message that the pipeline hands on, with stand-ins for curl and gh.
func TestNotify(t *testing.T) {
	var notify workflow
	readYAML(t, recipes+"notify.yml", &notify)
	var got []string
	for _, step := range notify.Jobs["notify"].Steps {
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", `curl() { cat; printf ' %s' "$@"; }; gh() { printf '%s\n' "$@"; }`+"\n"+step.Run)
		cmd.Env = append(os.Environ(), `MESSAGE=Job completed: "x"`, "SLACK_WEBHOOK_URL=https://hooks.example.com/1")
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		got = append(got, string(text))
	}
	want := []string{
		"{\n  \"text\": \"Job completed: \\\"x\\\"\"\n}\n --fail --silent --show-error --data @- https://hooks.example.com/1",
		"issue\ncomment\n12\n--body\nJob completed: \"x\"\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A run is cut short while it waits, and the next one gets a fresh checkout, and the bucket as it is, with the lock of a
// run that was killed. Meanwhile and afterwards, a pull request or branch only plans, and its role cannot write.
//
// Red without: the journal, because the next run sends again then; -lock=false; a role that plans what is applied.
func TestAccStores_cutShort(t *testing.T) {
	t.Parallel()
	if !canInterrupt {
		t.Skip("needs process groups: the CLI and the provider are killed together")
	}
	const adopted, completed = "Agent job adopted", "Job completed: https://"
	github := func(r *runner) (text, failed string) {
		r.checkout(oneApply)
		return r.github(pipelines + "push.yml")
	}
	gitlab := func(r *runner) (text, failed string) { return r.gitlab(oneApply) }
	for name, test := range map[string]struct {
		signal syscall.Signal
		apply  string // the step or job that is cut short
		run    func(r *runner) (text, failed string)
		isLost bool // the state
	}{
		"GitHub, lost":      {syscall.SIGKILL, "Apply", github, true},
		"GitHub, cancelled": {syscall.SIGINT, "Apply", github, false}, // Red without: exec
		"GitLab, lost":      {syscall.SIGKILL, "apply", gitlab, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startPipeline(t, time.Hour)
			r.useBucket()
			planOnly := func(shows string) {
				t.Helper()
				pull, before, sent := *r, r.bucket.objects(), r.service.Counts()
				pull.trial, pull.values, pull.kill, pull.meanwhile = new(*r.trial), maps.Clone(r.values), 0, nil
				pull.values["github.event_name"], pull.values["branch"] = "pull_request", "feature"
				if text, failed := test.run(&pull); failed != "" || !strings.Contains(text, shows) {
					t.Errorf("%q failed, or does not show %q:\n%s", failed, shows, text)
				}
				counts := r.service.Counts()
				counts.Get = sent.Get
				if diff := cmp.Diff([]any{before, sent}, []any{r.bucket.objects(), counts}); diff != "" {
					t.Errorf("a plan changed the bucket, or sent (-before +after):\n%s", diff)
				}
			}
			r.kill, r.meanwhile = test.signal, func() { planOnly("1 to add") }
			if text, failed := test.run(r); failed != test.apply {
				t.Fatalf("%q failed:\n%s", failed, text)
			}
			r.kill = 0
			r.service.SetStatus(r.service.Jobs()[0].ID, "completed")
			text, failed := test.run(r)
			if test.isLost {
				lock := regexp.MustCompile(`Lock Info:\W+ID: +(\S+)`).FindStringSubmatch(text)
				if failed == "" || lock == nil {
					t.Fatalf("%q failed with the lock of the lost run:\n%s", failed, text)
				}
				if text, ok := r.bash([]string{"bash"}, "terraform force-unlock -force "+lock[1], r.bucket.assume("agent-apply").env()); !ok {
					t.Fatal(text)
				}
				text, failed = test.run(r)
			}
			if failed != "" || !strings.Contains(text, completed) || test.isLost != strings.Contains(text, adopted) {
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

// The first apply stores the state, and the second one waits and is killed: the next run needs no journal.
func TestAccTwoApplies(t *testing.T) {
	t.Parallel()
	if !canInterrupt {
		t.Skip("needs process groups: the CLI and the provider are killed together")
	}
	r := startPipeline(t, time.Hour)
	r.env = []string{
		"AGENT_BASE_URL=" + r.values["vars.AGENT_BASE_URL"], "AGENT_PROJECT_ID=proj_123", "AGENT_ADMIN_KEY=" + canary, "TF_CLI_CONFIG_FILE=" + withInit,
	}
	for _, r.kill = range []syscall.Signal{syscall.SIGKILL, 0} {
		r.checkout(pipelines + "two-applies.tf")
		if text, ok := r.bash([]string{"bash"}, "set -euo pipefail\n"+read(t, pipelines+"two-applies.sh"), nil); ok != (r.kill == 0) {
			t.Fatal(text)
		}
		r.service.SetStatus(r.service.Jobs()[0].ID, "completed")
	}
	r.expect([]string{reference})
}
