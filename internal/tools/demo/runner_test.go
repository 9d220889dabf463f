// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
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

// backend is one of the type http, with locks also as GitLab has them.
type backend struct {
	*testing.T

	mu          sync.Mutex
	state, lock []byte
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	isLock := strings.HasSuffix(r.URL.Path, "/lock")
	switch method := r.Method; {
	case method == "UNLOCK" || isLock && method == http.MethodDelete:
		b.lock = nil
	case (method == "LOCK" || isLock) && b.lock == nil:
		b.lock = body
	case method == "LOCK" || isLock:
		w.WriteHeader(http.StatusLocked)
		_, _ = w.Write(b.lock)
	case method == http.MethodPost:
		if b.state = body; bytes.Contains(body, []byte(canary)) {
			b.Error("the key is in the state")
		}
	case b.state == nil:
		w.WriteHeader(http.StatusNotFound)
	default:
		_, _ = w.Write(b.state)
	}
}

// runner runs the scripts of a pipeline as they stand in its YAML.
type runner struct {
	*trial

	backend     *backend
	bin, origin string
	values      map[string]string // of expressions and variables
	kill        syscall.Signal    // sent to the apply once it waits; 0: none
}

// startPipeline is start for runners that have the state at a remote backend.
func startPipeline(t *testing.T, jobs time.Duration) *runner {
	t.Helper()
	s := start(t, jobs)
	dir, states := t.TempDir(), &backend{T: t}
	server := httptest.NewServer(states)
	t.Cleanup(server.Close)
	r := &runner{trial: s, backend: states, bin: filepath.Join(dir, "bin"), origin: filepath.Join(dir, "agent"), values: map[string]string{
		"vars.AGENT_BASE_URL": s.service.URL, "vars.AGENT_PROJECT_ID": "proj_123", "vars.AGENT_JOURNAL_URL": journalURL(t),
		"secrets.AGENT_ADMIN_KEY": canary, "vars.TF_STATE_URL": server.URL, "vars.TF_STATE_USERNAME": "ci", "secrets.TF_STATE_PASSWORD": "password",
		"github.event_name": "push", "github.event.before": "", "github.run_id": "101", "github.sha": "5f7079d", "github.ref_name": "v1",
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

// bash runs a script, and returns what it shows and whether it succeeded.
func (r *runner) bash(shell []string, script string, env []string) (text string, ok bool) {
	r.Helper()
	ctx, cut := context.WithCancel(r.Context())
	defer cut()
	cmd := exec.CommandContext(ctx, shell[0], append(shell[1:], "-c", script)...)
	cmd.Env = slices.Concat(slices.DeleteFunc(os.Environ(), tfcli.IsForeign), []string{
		"PATH=" + r.bin + ":" + os.Getenv("PATH"), "CHECKPOINT_DISABLE=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url." + r.origin + ".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/agentjobs/terraform-provider-agent",
	}, env)
	leadGroup(cmd)
	cmd.WaitDelay = grace
	cmd.Cancel = func() error {
		if r.kill == syscall.SIGINT { // as GitHub does: to the process of the step alone, and all are killed after a while
			return cmd.Process.Signal(r.kill)
		}
		return signalGroup(cmd, syscall.SIGKILL)
	}
	if r.kill != 0 && strings.Contains(script, "terraform apply") {
		defer func() { _ = signalGroup(cmd, syscall.SIGKILL) }() // what is left of it
		gets := r.service.Counts().Get
		go func() {
			for r.service.Counts().Get == gets && ctx.Err() == nil { // until it waits for the job, or has ended
				time.Sleep(10 * time.Millisecond)
			}
			cut()
		}()
	}
	return r.run(cmd)
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
		shown, ok := r.bash(strings.Fields(strings.TrimSuffix(job.Defaults.Run.Shell, " {0}")), r.expand(step.Run), slices.Concat(env, strings.Fields(string(more))))
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
		Variables map[string]string
		Stages    []string
		Jobs      map[string]job `yaml:",inline"`
	}
	readYAML(r.T, pipelines+"gitlab-ci.yml", &all)
	r.checkout(file)
	r.commit("The configuration")
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
	kept := []string{"clean", "-ffdxq"}
	for _, name := range []string{"provider", "plan", "apply"} {
		if name == "apply" && r.values["branch"] != "main" {
			continue
		}
		r.git(kept...)
		step := all.Jobs[name]
		shown, ok := r.bash([]string{"bash"}, strings.Join(slices.Concat(all.Jobs[step.Extends].BeforeScript, step.Script), "\n"), env)
		text += shown
		if !ok {
			return text, name
		}
		for _, path := range step.Artifacts.Paths {
			kept = append(kept, "--exclude="+path)
		}
	}
	return text, ""
}
