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

	"go.yaml.in/yaml/v3"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// journalURL names a store of its own: a bucket in make test-s3, and otherwise a folder.
func journalURL(t *testing.T) string {
	t.Helper()
	if bucket, options, found := strings.Cut(os.Getenv("AGENT_TEST_S3"), "?"); found {
		return bucket + "/" + strings.ToLower(rand.Text()) + "?" + options
	}
	return t.TempDir()
}

// stateServer is a backend of the type http, with locks also as GitLab has them.
func stateServer(t *testing.T) (url string) {
	t.Helper()
	var mu sync.Mutex
	var state, lock []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		isLock := strings.HasSuffix(r.URL.Path, "/lock")
		switch method := r.Method; {
		case method == "UNLOCK" || isLock && method == http.MethodDelete:
			lock = nil
		case (method == "LOCK" || isLock) && lock == nil:
			lock = body
		case method == "LOCK" || isLock:
			w.WriteHeader(http.StatusLocked)
			_, _ = w.Write(lock)
		case method == http.MethodPost:
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
	return server.URL
}

// runner runs the scripts of a pipeline as they stand in its YAML.
type runner struct {
	*trial

	bin, origin string
	values      map[string]string // of expressions and variables
	kill        syscall.Signal    // sent to the apply once it waits; 0: none
}

// startPipeline is start for runners that have the state at a remote backend.
func startPipeline(t *testing.T, jobs time.Duration) *runner {
	t.Helper()
	s := start(t, jobs)
	needs(t, "1.10.0", "1.11.0") // ephemeral variables
	dir := t.TempDir()
	r := &runner{trial: s, bin: filepath.Join(dir, "bin"), origin: filepath.Join(dir, "agent"), values: map[string]string{
		"vars.AGENT_BASE_URL": strings.TrimPrefix(s.env[0], "AGENT_BASE_URL="), "vars.AGENT_PROJECT_ID": "proj_123", "vars.AGENT_JOURNAL_URL": journalURL(t),
		"secrets.AGENT_ADMIN_KEY": canary, "vars.TF_STATE_URL": stateServer(t), "vars.TF_STATE_USERNAME": "ci", "secrets.TF_STATE_PASSWORD": "password",
		"github.event_name": "push", "github.event.before": "", "github.event.inputs.since": "", "github.run_id": "101", "github.sha": "5f7079d", "github.ref_name": "v1",
		"branch": "main",
	}}
	s.config, s.env = "", nil // the scripts set them
	// A stand-in for the provider's repository: make install prints what it printed for these tests, and leaves the same files.
	s.dir = r.origin
	s.write("installed", installed.String())
	s.write("Makefile", "install:\n\t@cat installed\n\t@if [ -n \"$$XDG_CACHE_HOME\" ]; then mkdir -p $$XDG_CACHE_HOME/terraform-provider-agent; cp -R '"+
		filepath.Dir(withInit)+"' $$XDG_CACHE_HOME/terraform-provider-agent/installed; "+
		"sed -i 's|"+filepath.Dir(withInit)+"|'$$XDG_CACHE_HOME'/terraform-provider-agent/installed|' $$XDG_CACHE_HOME/terraform-provider-agent/installed/mirror.tfrc; fi\n")
	if err := errors.Join(os.Mkdir(r.bin, 0o700), os.Symlink(cli.Path, filepath.Join(r.bin, "terraform"))); err != nil {
		t.Fatal(err)
	}
	r.values["vars.AGENT_PROVIDER_COMMIT"] = r.commit("A commit")
	return r
}

// commit commits all files in the folder, and returns the commit.
func (r *runner) commit(message string) string {
	r.Helper()
	r.git("init", "-q")
	r.git("add", ".")
	r.git("commit", "-qm", message)
	return r.git("rev-parse", "HEAD")
}

// git calls git in the folder and returns what it prints.
func (r *runner) git(args ...string) string {
	r.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.dir, "-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"}, args...)...)
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

// githubClone is github in a fresh clone of a repository at a commit or tag.
func (r *runner) githubClone(repository, at, caller string) (text, failed string) {
	r.Helper()
	r.dir = r.TempDir()
	r.git("clone", "-q", repository, ".")
	r.git("checkout", "-q", at)
	return r.github(caller)
}

// bash runs a script, and returns what it shows and whether it succeeded.
func (r *runner) bash(shell []string, script string, env []string) (text string, ok bool) {
	r.Helper()
	file := filepath.Join(r.TempDir(), "script")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		r.Fatal(err)
	}
	cmd := exec.CommandContext(r.Context(), shell[0], append(shell[1:], file)...)
	cmd.Env = slices.Concat(slices.DeleteFunc(os.Environ(), tfcli.IsForeign), []string{
		"PATH=" + r.bin + ":" + os.Getenv("PATH"), "CHECKPOINT_DISABLE=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url." + r.origin + ".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/agentjobs/terraform-provider-agent",
	}, env)
	var shown bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = r.dir, &shown, &shown, grace
	leadGroup(cmd)
	gets := r.service.Counts().Get
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if r.kill != 0 && strings.Contains(script, "terraform apply") {
		r.cutShort(cmd, gets, ended)
	}
	ok = <-ended == nil
	if text = shown.String(); strings.Contains(text, canary) {
		r.Errorf("it shows the key:\n%s", text)
	}
	return text, ok
}

// cutShort sends a command the signal once the service has seen more GETs.
func (r *runner) cutShort(cmd *exec.Cmd, gets int, ended chan error) {
	r.Helper()
	for r.service.Counts().Get == gets {
		select {
		case err := <-ended:
			r.Fatalf("ended by itself: %v\n%s", err, cmd.Stdout)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if r.kill == syscall.SIGINT { // as GitHub does: to the process of the step alone, and all are killed after a while
		_ = cmd.Process.Signal(r.kill)
		select {
		case err := <-ended:
			ended <- err
			return
		case <-time.After(10 * time.Second):
		}
	}
	_ = signalGroup(cmd, syscall.SIGKILL)
}

// workflow is what the tests read of a workflow of GitHub Actions.
type workflow struct {
	Jobs map[string]struct {
		Env      map[string]string
		Defaults struct{ Run struct{ Shell string } }
		With     map[string]string
		Steps    []struct{ Name, If, Run string }
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
		shown, ok := r.bash(strings.Fields(strings.TrimSuffix(job.Defaults.Run.Shell, " {0}")), r.expand(step.Run), slices.Concat(env, strings.Split(strings.TrimSpace(string(more)), "\n")))
		text += shown
		if !ok && failed == "" {
			failed = step.Name
		}
	}
	summary, _ := os.ReadFile(files + "/summary")
	return text + string(summary), failed
}

// gitlab runs the jobs of gitlab-ci.yml in a folder, where each finds the artifacts of those before, and
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
	r.checkout(file)
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
	kept := []string{"main.tf", "backend-http.tf"}
	for _, step := range []struct {
		name string
		job  job
	}{{"provider", all.Provider}, {"plan", all.Plan}, {"apply", all.Apply}} {
		if step.name == "apply" && r.values["branch"] != "main" {
			continue
		}
		r.removeAllBut(kept)
		script := step.job.Script
		if step.job.Extends == ".terraform" {
			script = slices.Concat(all.Terraform.BeforeScript, script)
		}
		shown, ok := r.bash([]string{"bash"}, strings.Join(script, "\n"), env)
		text += shown
		if !ok {
			return text, step.name
		}
		kept = append(kept, step.job.Artifacts.Paths...)
	}
	return text, ""
}

// removeAllBut removes everything in the folder but some files.
func (r *runner) removeAllBut(kept []string) {
	r.Helper()
	entries, err := os.ReadDir(r.dir)
	for _, entry := range entries {
		if !slices.Contains(kept, entry.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(r.dir, entry.Name())))
		}
	}
	if err != nil {
		r.Fatal(err)
	}
}
