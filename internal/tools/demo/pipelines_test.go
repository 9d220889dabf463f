// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
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
	files := []string{oneApply, recipes + "module.tf", recipes + "notify.yml"}
	for _, name := range []string{"two-applies.tf", "backend-http.tf", "github-actions.yml", "push.yml", "gitlab-ci.yml"} {
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
	for recipe, test := range map[string]struct {
		event  string // an expression or file that differs between runs
		values []string
		want   [][]string
	}{
		"schedule": {"github.run_id", []string{"101", "101", "102"}, slices.Repeat([][]string{{"Correct the spelling in the API reference"}}, 2)},
		"openapi":  {"openapi.json", []string{"{}", `{"openapi": "3.1.0"}`}, slices.Repeat([][]string{{reference + " with openapi.json"}}, 2)},
	} {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			r := startPipeline(t, 0)
			for _, value := range test.values {
				r.checkout(recipes + recipe + ".tf")
				r.values[test.event] = value
				r.write("openapi.json", value)
				if text, failed := r.github(recipes + recipe + ".yml"); failed != "" || !strings.Contains(text, message) {
					t.Fatalf("%s failed:\n%s", failed, text)
				}
			}
			r.expect(test.want...)
		})
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

// A wait that stops early fails the run, and the next one resumes it.
func TestAccStrict(t *testing.T) {
	t.Parallel()
	s := start(t, time.Hour)
	needs(t, "1.10.0", "1.11.0") // ephemeral variables
	s.write("main.tf", configuration(t, oneApply))
	s.service.Inject(simulator.Fault{Kind: simulator.KindGet, Status: http.StatusForbidden})
	text, ok := s.try("apply", "-auto-approve")
	if ok || !strings.Contains(text, "Resource postcondition failed") || !strings.Contains(text, " is active.") {
		t.Fatalf("an apply whose job keeps running: %t\n%s", ok, text)
	}
	s.service.SetStatus(s.service.Jobs()[0].ID, "completed")
	s.apply()
	s.expect([]string{reference})
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

// A run is cut short while it waits, and the next one gets a fresh checkout and the state as it is at the
// backend, with the lock of a run that was killed.
//
// Red without: a journal. The next run sends again then.
func TestAccStores_cutShort(t *testing.T) {
	t.Parallel()
	if !canInterrupt {
		t.Skip("needs process groups: the CLI and the provider are killed together")
	}
	const takenOver, completed = "Agent job of an earlier run will be taken over", "Job completed: https://"
	github := func(r *runner) (text, failed string) {
		r.checkout(oneApply)
		return r.github(pipelines + "push.yml")
	}
	gitlab := func(r *runner) (text, failed string) { return r.gitlab(oneApply) }
	// The first apply stores the state, and the second one waits. There is neither a journal nor a lock.
	twoApplies := func(r *runner) (text, failed string) {
		r.checkout(pipelines + "two-applies.tf")
		text, ok := r.bash([]string{"bash"}, "set -euo pipefail\n"+read(r.T, pipelines+"two-applies.sh"), []string{
			"AGENT_BASE_URL=" + r.values["vars.AGENT_BASE_URL"], "AGENT_PROJECT_ID=proj_123", "TF_VAR_agent_admin_key=" + canary,
			"TF_HTTP_ADDRESS=" + r.values["vars.TF_STATE_URL"], "TF_CLI_CONFIG_FILE=" + withInit, "AGENT_JOURNAL_URL=",
		})
		return text, map[bool]string{false: "script"}[ok]
	}
	for name, test := range map[string]struct {
		signal syscall.Signal
		apply  string // the step or job that is cut short
		run    func(r *runner) (text, failed string)
		alert  string // empty: nothing was lost
		end    string // what the next run shows
	}{
		"GitHub, lost":      {syscall.SIGKILL, "Apply", github, "::warning title=" + takenOver + "::agent_job.reference: ", completed},
		"GitHub, cancelled": {syscall.SIGINT, "Apply", github, "", completed}, // Red without: exec
		"GitLab, lost":      {syscall.SIGKILL, "apply", gitlab, takenOver, completed},
		"two applies, lost": {syscall.SIGKILL, "script", twoApplies, "", "Modifications complete"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startPipeline(t, time.Hour)
			r.kill = test.signal
			if text, failed := test.run(r); failed != test.apply {
				t.Fatalf("%q failed:\n%s", failed, text)
			}
			r.kill = 0
			r.service.SetStatus(r.service.Jobs()[0].ID, "completed")
			text, failed := test.run(r)
			isLost := test.alert != ""
			if isLost {
				lock := regexp.MustCompile(`(?s)Error acquiring the state lock.*?ID: +(\S+)`).FindStringSubmatch(text)
				if failed == "" || lock == nil {
					t.Fatalf("%q failed with the lock of the lost run:\n%s", failed, text)
				}
				url := r.values["vars.TF_STATE_URL"]
				r.env = []string{"TF_HTTP_ADDRESS=" + url, "TF_HTTP_LOCK_ADDRESS=" + url, "TF_HTTP_UNLOCK_ADDRESS=" + url}
				r.config = withInit
				r.call("force-unlock", "-force", lock[1])
				text, failed = test.run(r)
			}
			if failed != "" || !strings.Contains(text, test.end) || !strings.Contains(text, test.alert) || isLost != strings.Contains(text, takenOver) {
				t.Errorf("%q failed, or the alert is missing or wrong:\n%s", failed, text)
			}
			r.expect([]string{reference})
		})
	}
}

// A pull request and a branch only plan, also while an apply holds the lock.
//
// Red without: -lock=false.
func TestAccPlanOnly(t *testing.T) {
	t.Parallel()
	r := startPipeline(t, 0)
	locked, err := http.NewRequestWithContext(t.Context(), "LOCK", r.values["vars.TF_STATE_URL"], strings.NewReader(`{"ID": "of an apply"}`))
	if err != nil {
		t.Fatal(err)
	}
	if response, err := http.DefaultClient.Do(locked); err != nil || response.Body.Close() != nil {
		t.Fatal(err)
	}
	r.values["github.event_name"], r.values["branch"] = "pull_request", "feature"
	r.checkout(oneApply)
	journal := r.values["vars.AGENT_JOURNAL_URL"]
	for plan, run := range map[string]func() (text, failed string){ // by the step or job that plans
		"Plan": func() (string, string) { return r.github(pipelines + "push.yml") },
		"plan": func() (string, string) { return r.gitlab(oneApply) },
	} {
		r.values["vars.AGENT_JOURNAL_URL"] = journal
		if text, failed := run(); failed != "" || !strings.Contains(text, "1 to add") || r.service.Counts() != (simulator.Counts{}) {
			t.Errorf("%q failed, %+v\n%s", failed, r.service.Counts(), text)
		}
		r.values["vars.AGENT_JOURNAL_URL"] = "" // the default folder would vanish with the runner
		if text, failed := run(); failed != plan {
			t.Errorf("%q failed without a journal, want %q:\n%s", failed, plan, text)
		}
	}
}
