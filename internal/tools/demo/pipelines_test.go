// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
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

// journalURL names a store of its own: a bucket in make test-s3, and otherwise a folder.
func journalURL(t *testing.T) string {
	t.Helper()
	if bucket, options, found := strings.Cut(os.Getenv("AGENT_TEST_S3"), "?"); found {
		return bucket + "/" + strings.ToLower(rand.Text()) + "?" + options
	}
	return t.TempDir()
}

// startPipeline is start for runners that have the state at a remote backend.
func startPipeline(t *testing.T, jobs time.Duration) *runner {
	t.Helper()
	s := start(t, jobs)
	needs(t, "1.10.0", "1.11.0") // ephemeral variables
	var mu sync.Mutex
	var state, lock []byte
	run := &runner{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		method := r.Method
		if strings.HasSuffix(r.URL.Path, "/lock") { // as GitLab has it
			method = cmp.Or(map[string]string{http.MethodPost: "LOCK", http.MethodDelete: "UNLOCK"}[method], method)
		}
		switch {
		case err != nil:
		case method == "LOCK" && lock != nil:
			w.WriteHeader(http.StatusLocked)
			_, _ = w.Write(lock)
		case method == "LOCK":
			lock = body
		case method == "UNLOCK":
			lock = nil
		case r.Method == http.MethodPost && run.readOnly:
			w.WriteHeader(http.StatusForbidden)
		case r.Method == http.MethodPost:
			if state = body; bytes.Contains(state, []byte(canary)) {
				t.Error("the key is in the state")
			}
		case state == nil:
			w.WriteHeader(http.StatusNotFound)
		default:
			_, _ = w.Write(state)
		}
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	*run = runner{trial: s, bin: filepath.Join(dir, "bin"), origin: filepath.Join(dir, "agent"), values: map[string]string{
		"vars.AGENT_BASE_URL": strings.TrimPrefix(s.env[0], "AGENT_BASE_URL="), "vars.AGENT_PROJECT_ID": "proj_123", "vars.AGENT_JOURNAL_URL": journalURL(t),
		"secrets.AGENT_ADMIN_KEY": canary, "vars.TF_STATE_URL": server.URL, "vars.TF_STATE_USERNAME": "ci", "secrets.TF_STATE_PASSWORD": "password",
		"github.event_name": "push", "github.event.before": "", "github.run_id": "101", "github.sha": "5f7079d", "github.ref_name": "v1",
		"branch": "main",
	}}
	r := run
	s.config, s.env = "", nil // the scripts set them
	// A stand-in for the provider's repository: make install prints what it printed for these tests, and leaves the same files.
	write := func(name, text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(r.origin, "installed"), installed.String())
	write(filepath.Join(r.origin, "Makefile"), "install:\n\t@cat installed\n\t@if [ -n \"$$XDG_CACHE_HOME\" ]; then mkdir -p $$XDG_CACHE_HOME/terraform-provider-agent; cp -R '"+
		filepath.Dir(withInit)+"' $$XDG_CACHE_HOME/terraform-provider-agent/installed; "+
		"sed -i 's|"+filepath.Dir(withInit)+"|'$$XDG_CACHE_HOME'/terraform-provider-agent/installed|' $$XDG_CACHE_HOME/terraform-provider-agent/installed/mirror.tfrc; fi\n")
	if err := errors.Join(os.MkdirAll(r.bin, 0o700), os.Symlink(cli.Path, filepath.Join(r.bin, "terraform"))); err != nil {
		t.Fatal(err)
	}
	r.git(r.origin, "init", "-q")
	r.git(r.origin, "add", ".")
	r.git(r.origin, "commit", "-qm", "A commit")
	r.values["vars.AGENT_PROVIDER_COMMIT"] = r.git(r.origin, "rev-parse", "HEAD")
	return r
}

// runner runs the scripts of a pipeline as they stand in its YAML.
type runner struct {
	*trial

	bin, origin string
	readOnly    bool              // the state cannot be stored
	values      map[string]string // of expressions and variables
	kill        syscall.Signal    // sent to the apply once it waits; 0: none
}

// git calls git in a folder and returns what it prints.
func (r *runner) git(dir string, args ...string) string {
	r.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"}, args...)...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("git %v: %v\n%s", args, err, text)
	}
	return strings.TrimSpace(string(text))
}

// checkout makes a fresh folder with a configuration and its files, as a runner does.
func (r *runner) checkout(file string) {
	r.Helper()
	r.dir = r.TempDir()
	r.write("main.tf", configuration(r.T, file))
	r.write("backend-http.tf", read(r.T, pipelines+"backend-http.tf"))
}

// bash runs a script and returns what it shows, and whether it succeeded.
func (r *runner) bash(shell []string, script string, env []string) (text string, ok bool) {
	r.Helper()
	file := filepath.Join(r.TempDir(), "script")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		r.Fatal(err)
	}
	cmd := exec.CommandContext(r.Context(), shell[0], append(shell[1:], file)...)
	cmd.Dir = r.dir
	cmd.Env = slices.Concat(slices.DeleteFunc(os.Environ(), tfcli.IsForeign), []string{
		"PATH=" + r.bin + ":" + os.Getenv("PATH"), "CHECKPOINT_DISABLE=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url." + r.origin + ".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/agentjobs/terraform-provider-agent",
	}, env)
	signal := syscall.Signal(0)
	if strings.Contains(script, "terraform apply") {
		signal = r.kill
	}
	text, err := r.runWhileWaiting(cmd, r.service.Counts().Get+1, signal)
	if strings.Contains(text, canary) {
		r.Errorf("it shows the key:\n%s", text)
	}
	return text, err == nil
}

// workflow is what the tests read of a workflow of GitHub Actions.
type workflow struct {
	Jobs map[string]struct {
		Env      map[string]string
		Defaults struct{ Run struct{ Shell string } }
		With     map[string]string
		Steps    []struct {
			Name, If, Run string
			Env           map[string]string
		}
	}
}

func readYAML(t *testing.T, file string, to any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, file)), to); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

var expression = regexp.MustCompile(`\$\{\{ (.*?) \}\}`)

// expand replaces the expressions in a text of a workflow.
func (r *runner) expand(text string) string {
	r.values["github.event_name == 'pull_request' && '-lock=false' || ''"] = map[string]string{"pull_request": "-lock=false"}[r.values["github.event_name"]]
	return expression.ReplaceAllStringFunc(text, func(found string) string {
		value, ok := r.values[expression.FindStringSubmatch(found)[1]]
		if !ok {
			r.Fatalf("no value for %s", found)
		}
		return value
	})
}

// github runs a workflow that calls github-actions.yml, and returns what its steps show and
// the name of the one that failed.
func (r *runner) github(caller string) (text, failed string) {
	r.Helper()
	var trigger, called workflow
	readYAML(r.T, caller, &trigger)
	readYAML(r.T, pipelines+"github-actions.yml", &called)
	r.values["inputs.prepare"] = cmp.Or(trigger.Jobs["agent"].With["prepare"], "true")
	job, files := called.Jobs["run"], r.TempDir()
	env := []string{"RUNNER_TEMP=" + r.TempDir(), "GITHUB_ENV=" + files + "/env", "GITHUB_OUTPUT=" + files + "/output", "GITHUB_STEP_SUMMARY=" + files + "/summary"}
	for name, value := range job.Env {
		env = append(env, name+"="+r.expand(value))
	}
	for _, step := range job.Steps {
		always := strings.Contains(step.If, "!cancelled()")
		if step.Run == "" || failed != "" && !always || strings.Contains(step.If, "!= 'pull_request'") && r.values["github.event_name"] == "pull_request" {
			continue
		}
		more, _ := os.ReadFile(files + "/env")
		shown, ok := r.bash(strings.Fields(strings.TrimSuffix(job.Defaults.Run.Shell, " {0}")), r.expand(step.Run), slices.Concat(env, strings.Fields(string(more))))
		text += shown
		if !ok && failed == "" {
			failed = step.Name
		}
	}
	summary, _ := os.ReadFile(files + "/summary")
	return text + string(summary), failed
}

// gitlab runs the jobs of gitlab-ci.yml, each in a fresh folder with the artifacts of those before, and
// returns what they show and the name of the one that failed.
func (r *runner) gitlab(file string) (text, failed string) {
	r.Helper()
	type job struct {
		Extends      string
		BeforeScript []string `yaml:"before_script"`
		Script       []string
		Artifacts    struct{ Paths []string }
	}
	var all struct {
		Variables             map[string]string
		Provider, Plan, Apply job
		Terraform             job `yaml:".terraform"`
	}
	readYAML(r.T, pipelines+"gitlab-ci.yml", &all)
	kept := r.TempDir()
	for _, name := range []string{"provider", "plan", "apply"} {
		if name == "apply" && r.values["branch"] != "main" {
			continue
		}
		job := map[string]job{"provider": all.Provider, "plan": all.Plan, "apply": all.Apply}[name]
		r.checkout(file)
		if err := os.CopyFS(r.dir, os.DirFS(kept)); err != nil {
			r.Fatal(err)
		}
		variables := map[string]string{
			"CI_PROJECT_DIR": r.dir, "CI_API_V4_URL": r.values["vars.TF_STATE_URL"], "CI_PROJECT_ID": "7", "CI_JOB_TOKEN": "token", "AWS_TOKEN": "token",
			"CI_DEFAULT_BRANCH": "main", "CI_COMMIT_BRANCH": r.values["branch"], "AGENT_PLAN_KEY": canary, "AGENT_APPLY_KEY": canary,
		}
		for _, name := range []string{"AGENT_BASE_URL", "AGENT_PROJECT_ID", "AGENT_JOURNAL_URL", "AGENT_PROVIDER_COMMIT"} {
			variables[name] = r.values["vars."+name]
		}
		maps.Copy(variables, all.Variables)
		var expand func(string) string
		expand = func(name string) string { return os.Expand(variables[name], expand) }
		var env []string
		for name := range variables {
			env = append(env, name+"="+expand(name))
		}
		script := job.Script
		if job.Extends == ".terraform" {
			script = slices.Concat(all.Terraform.BeforeScript, script)
		}
		shown, ok := r.bash([]string{"bash"}, strings.Join(script, "\n"), env)
		text += shown
		if !ok {
			return text, name
		}
		for _, path := range job.Artifacts.Paths {
			// cp keeps what an executable is.
			if out, err := exec.Command("cp", "-R", filepath.Join(r.dir, path), kept).CombinedOutput(); err != nil && path != "errored.tfstate" {
				r.Fatalf("%v: %s", err, out)
			}
		}
		// The folder of GitLab's jobs is the same; here the configuration of the CLI names the one of the first.
		if name == "provider" {
			r.bash([]string{"bash"}, "sed -i 's|"+r.dir+"|"+kept+"|' "+kept+"/.provider/mirror.tfrc", nil)
		}
	}
	return text, ""
}

// runWhileWaiting runs a command, which gets a signal, if there is one, once the service has seen
// that many GETs.
func (s *trial) runWhileWaiting(cmd *exec.Cmd, looks int, signal syscall.Signal) (string, error) {
	s.Helper()
	cmd.WaitDelay = grace
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	leadGroup(cmd)
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for signal != 0 && s.service.Counts().Get < looks {
		select {
		case err := <-ended:
			s.Fatalf("ended by itself: %v\n%s", err, &text)
		case <-time.After(10 * time.Millisecond):
		}
	}
	switch signal {
	case syscall.SIGKILL:
		if err := signalGroup(cmd, signal); err != nil {
			s.Error(err)
		}
	case syscall.SIGINT: // as GitHub does: to the process of the step alone
		if err := cmd.Process.Signal(signal); err != nil {
			s.Error(err)
		}
		defer time.AfterFunc(10*time.Second, func() { _ = signalGroup(cmd, syscall.SIGKILL) }).Stop()
	}
	err := <-ended
	return text.String(), err
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
		"release":  {"github.ref_name", []string{"v1", "v2"}, [][]string{{"Update the API reference for v1"}, {"Update the API reference for v2"}}},
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

// A merged change is sent as it is; what git cannot tell starts no job.
//
// Red without: pipefail, or a git diff that is not the first of a pipe. An empty prompt is paid for then.
func TestAccMerged(t *testing.T) {
	t.Parallel()
	r := startPipeline(t, 0)
	needs(t, "1.11.0", "1.11.0") // prompt_wo
	r.checkout(recipes + "merged.tf")
	r.git(r.dir, "init", "-q")
	r.write("page.txt", "old\n")
	r.git(r.dir, "add", ".")
	r.git(r.dir, "commit", "-qm", "before")
	before := r.git(r.dir, "rev-parse", "HEAD")
	r.write("page.txt", "new\n\xff\n")
	r.write("docs/page.md", "of the agent\n")
	r.git(r.dir, "add", ".")
	r.git(r.dir, "commit", "-qm", "after")
	for _, unknown := range []string{strings.Repeat("0", 40), "5f7079d000000000000000000000000000000000", r.git(r.dir, "rev-parse", "HEAD")} {
		r.values["github.event.before"] = unknown
		if text, failed := r.github(recipes + "merged.yml"); failed != "Prepare" || r.service.Counts() != (simulator.Counts{}) {
			t.Fatalf("failed: %q, %+v\n%s", failed, r.service.Counts(), text)
		}
	}
	r.values["github.event.before"] = before
	for range 2 { // the second one is a re-run
		if text, failed := r.github(recipes + "merged.yml"); failed != "" {
			t.Fatalf("%s failed:\n%s", failed, text)
		}
	}
	jobs := r.service.Jobs()
	if len(jobs) != 1 || len(jobs[0].Prompts) != 1 || !strings.Contains(jobs[0].Prompts[0], "-old\n+new\n") || strings.Contains(jobs[0].Prompts[0], "of the agent") {
		t.Errorf("%+v", jobs)
	}
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
	job := notify.Jobs["notify"]
	message := "Job completed: \"x\""
	var got []string
	for _, step := range job.Steps {
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", `curl() { cat; printf ' %s' "$@"; }; gh() { printf '%s\n' "$@"; }`+"\n"+step.Run)
		cmd.Env = append(os.Environ(), "MESSAGE="+message, "SLACK_WEBHOOK_URL=https://hooks.example.com/1")
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		got = append(got, string(text))
	}
	want := []string{
		"{\n  \"text\": \"Job completed: \\\"x\\\"\"\n}\n --fail --silent --show-error --data @- https://hooks.example.com/1",
		"issue\ncomment\n12\n--body\n" + message + "\n",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
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
	const alert = "Agent job of an earlier run will be taken over"
	github := func(r *runner) (string, string) {
		r.checkout(oneApply)
		return r.github(pipelines + "push.yml")
	}
	for name, test := range map[string]struct {
		signal syscall.Signal
		apply  string // the step or job that is cut short
		run    func(r *runner) (text, failed string)
	}{
		"GitHub, lost":      {syscall.SIGKILL, "Apply", github},
		"GitHub, cancelled": {syscall.SIGINT, "Apply", github}, // Red without: exec
		"GitLab, lost":      {syscall.SIGKILL, "apply", func(r *runner) (string, string) { return r.gitlab(oneApply) }},
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
			lost := test.signal == syscall.SIGKILL
			if lost {
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
			if failed != "" || lost != strings.Contains(text, alert) || !strings.Contains(text, "Job completed: https://") {
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
	text, failed := r.github(pipelines + "push.yml")
	gitlab, failedToo := r.gitlab(oneApply)
	for text, failed := range map[string]string{text: failed, gitlab: failedToo} {
		if failed != "" || !strings.Contains(text, "1 to add") || r.service.Counts() != (simulator.Counts{}) {
			t.Errorf("%q failed, %+v\n%s", failed, r.service.Counts(), text)
		}
	}
	r.values["vars.AGENT_JOURNAL_URL"] = "" // the default folder would vanish with the runner
	text, failed = r.github(pipelines + "push.yml")
	gitlab, failedToo = r.gitlab(oneApply)
	if failed != "Plan" || failedToo != "plan" {
		t.Errorf("%q and %q failed without a journal:\n%s\n%s", failed, failedToo, text, gitlab)
	}
}

// The state server refuses the state: it is where the pipelines collect it, and the next run
// takes the job over.
func TestAccStores_stateNotStored(t *testing.T) {
	t.Parallel()
	r := startPipeline(t, 0)
	r.readOnly = true
	r.checkout(oneApply)
	text, failed := r.github(pipelines + "push.yml")
	if _, err := os.Stat(filepath.Join(r.dir, "errored.tfstate")); failed != "Apply" || err != nil {
		t.Fatalf("%q failed, %v\n%s", failed, err, text)
	}
	for _, file := range []string{"github-actions.yml", "gitlab-ci.yml"} {
		if !regexp.MustCompile(`paths?: (\[errored.tfstate\]|errored.tfstate\n)`).MatchString(read(t, pipelines+file)) {
			t.Errorf("%s does not keep errored.tfstate", file)
		}
	}
	r.readOnly = false
	r.checkout(oneApply)
	if text, failed := r.github(pipelines + "push.yml"); failed != "" || !strings.Contains(text, "::warning title=Agent job of an earlier run will be taken over::agent_job.reference: ") {
		t.Errorf("%q failed:\n%s", failed, text)
	}
	r.expect([]string{reference})
}

// One apply sends and the next one waits; between them the runner is killed.
func TestAccTwoApplies(t *testing.T) {
	t.Parallel()
	if !canInterrupt {
		t.Skip("needs process groups: the CLI and the provider are killed together")
	}
	r := startPipeline(t, time.Hour)
	url := r.values["vars.TF_STATE_URL"]
	env := []string{"AGENT_BASE_URL=" + r.values["vars.AGENT_BASE_URL"], "AGENT_PROJECT_ID=proj_123", "TF_VAR_agent_admin_key=" + canary,
		"TF_HTTP_ADDRESS=" + url, "TF_CLI_CONFIG_FILE=" + withInit, "AGENT_JOURNAL_URL="}
	script := "set -euo pipefail\n" + read(t, pipelines+"two-applies.sh")
	r.checkout(pipelines + "two-applies.tf")
	first, rest, _ := strings.Cut(script, "tfplan        # sends\n")
	if text, ok := r.bash([]string{"bash"}, first+"tfplan\n", env); !ok {
		t.Fatal(text)
	}
	r.kill = syscall.SIGKILL
	if text, ok := r.bash([]string{"bash"}, rest, env); ok {
		t.Fatal(text)
	}
	r.kill = 0
	r.service.SetStatus(r.service.Jobs()[0].ID, "completed")
	r.checkout(pipelines + "two-applies.tf")
	if text, ok := r.bash([]string{"bash"}, script, env); !ok || !strings.Contains(text, "Modifications complete") {
		t.Errorf("%t\n%s", ok, text)
	}
	r.expect([]string{reference})
}
