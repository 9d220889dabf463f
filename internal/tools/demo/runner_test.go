// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// runner runs the scripts of a pipeline as they stand in its YAML.
type runner struct {
	*trial

	bin, origin string
	backend     string            // file with the state's place
	values      map[string]string // of expressions and variables
	bucket      *bucket           // nil: the state is in a folder
	kill        syscall.Signal    // sent to the apply once it waits; 0: none
	meanwhile   func()            // called before that
}

// startPipeline is start for runners that have the state, and a journal, in folders outside of their checkouts.
func startPipeline(t *testing.T, jobs time.Duration) *runner {
	t.Helper()
	s := start(t, jobs)
	needs(t, "1.10.0", "1.11.0") // ephemeral variables, and use_lockfile
	dir := t.TempDir()
	r := &runner{trial: s, bin: filepath.Join(dir, "bin"), origin: filepath.Join(dir, "agent"), values: map[string]string{
		"vars.AGENT_BASE_URL": strings.TrimPrefix(s.env[0], "AGENT_BASE_URL="), "vars.AGENT_PROJECT_ID": "proj_123", "secrets.AGENT_ADMIN_KEY": canary,
		"github.server_url": "https://github.com", "github.repository": "example/docs",
		"github.event_name": "push", "github.event.before": "", "github.event.inputs.since": "", "github.run_id": "101", "github.sha": "5f7079d", "github.ref_name": "v1",
		"branch": "main",
	}}
	r.backend = fmt.Sprintf("terraform {\n  backend \"local\" {\n    path = %q\n  }\n}\n", filepath.Join(dir, "terraform.tfstate"))
	s.config, s.env = "", []string{"AGENT_JOURNAL_URL=" + t.TempDir() + "?state=demo"} // the scripts set the rest
	// A stand-in for the provider's repository: make install prints what it printed for these tests, and leaves the same files.
	s.dir = r.origin
	s.write("installed", installed.String())
	s.write("Makefile", "install:\n\t@cat installed\n\t@if [ -n \"$$XDG_CACHE_HOME\" ]; then mkdir -p $$XDG_CACHE_HOME/terraform-provider-agent; cp -R '"+
		filepath.Dir(withInit)+"' $$XDG_CACHE_HOME/terraform-provider-agent/installed; "+
		"sed -i 's|"+filepath.Dir(withInit)+"|'$$XDG_CACHE_HOME'/terraform-provider-agent/installed|' $$XDG_CACHE_HOME/terraform-provider-agent/installed/mirror.tfrc; fi\n")
	r.use(cli)
	r.values["vars.AGENT_PROVIDER_COMMIT"] = r.commit("A commit")
	return r
}

// use makes a CLI the scripts' terraform.
func (r *runner) use(c tfcli.CLI) {
	r.Helper()
	if err := errors.Join(os.RemoveAll(r.bin), os.Mkdir(r.bin, 0o700), os.Symlink(c.Path, filepath.Join(r.bin, "terraform"))); err != nil {
		r.Fatal(err)
	}
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
	r.write("backend-s3.tf", r.backend)
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
	cmd.Env = slices.Concat(slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return tfcli.IsForeign(entry) || strings.HasPrefix(entry, "AWS_") // of the S3 server's owner
	}), r.env, []string{
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
	if r.meanwhile != nil {
		r.meanwhile()
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
	On struct {
		Call struct {
			Outputs map[string]struct{ Value string }
		} `yaml:"workflow_call"`
	}
	Jobs map[string]struct {
		Environment string
		Env         map[string]string
		Outputs     map[string]string
		Defaults    struct{ Run struct{ Shell string } }
		With        map[string]string
		Steps       []struct {
			Name, If, Run, Uses string
			Env                 map[string]string
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
	isPull := r.values["github.event_name"] == "pull_request"
	r.values["github.event_name == 'pull_request' && '-lock=false' || ''"] = map[bool]string{true: "-lock=false"}[isPull]
	r.values["github.event_name == 'pull_request' && 'agent-plan' || 'agent-apply'"] = map[bool]string{true: "agent-plan", false: "agent-apply"}[isPull]
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
		if r.bucket != nil && strings.HasPrefix(step.Uses, "aws-actions/configure-aws-credentials@") {
			env = append(env, r.bucket.assume(r.expand(job.Environment)).env()...)
		}
		always := strings.Contains(step.If, "!cancelled()")
		if step.Run == "" || failed != "" && !always || strings.Contains(step.If, "!= 'pull_request'") && r.values["github.event_name"] == "pull_request" {
			continue
		}
		more, _ := os.ReadFile(files + "/env")
		all := slices.Concat(env, strings.Split(strings.TrimSpace(string(more)), "\n"))
		for name, value := range step.Env {
			all = append(all, name+"="+r.expand(value))
		}
		if hasKey := strings.Contains(strings.Join(all, "\n"), canary); hasKey != (step.Name == "Plan" || step.Name == "Apply") {
			r.Errorf("step %q has the key: %t", step.Name, hasKey)
		}
		shown, ok := r.bash(strings.Fields(strings.TrimSuffix(job.Defaults.Run.Shell, " {0}")), r.expand(step.Run), all)
		text += shown
		if !ok && failed == "" {
			failed = step.Name
		}
	}
	summary, _ := os.ReadFile(files + "/summary")
	r.values["steps.link.outputs.pull_request"] = ""
	if outputs, _ := os.ReadFile(files + "/output"); len(outputs) > 0 {
		for line := range strings.Lines(string(outputs)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			r.values["steps.link.outputs."+name] = value
		}
		for name, value := range job.Outputs {
			r.values["jobs.run.outputs."+name] = r.expand(value)
		}
		for name, output := range called.On.Call.Outputs {
			r.values["needs.agent.outputs."+name] = r.expand(output.Value)
		}
	}
	return text + string(summary), failed
}

// githubNext runs the job of a workflow that comes after github's, and returns the name of the step that failed.
func (r *runner) githubNext(caller, name string) (failed string) {
	r.Helper()
	var all workflow
	readYAML(r.T, caller, &all)
	var env []string
	for name, value := range all.Jobs[name].Env {
		env = append(env, name+"="+r.expand(value))
	}
	for _, step := range all.Jobs[name].Steps {
		if text, ok := r.bash(strings.Fields(strings.TrimSuffix(all.Jobs[name].Defaults.Run.Shell, " {0}")), step.Run, env); !ok {
			r.Log(text)
			return step.Name
		}
	}
	return ""
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
		Environment  struct{ Name string }
	}
	var all struct {
		Variables             map[string]string
		Provider, Plan, Apply job
		Terraform             job `yaml:".terraform"`
	}
	readYAML(r.T, pipelines+"gitlab-ci.yml", &all)
	r.checkout(file)
	variables := map[string]string{
		"CI_PROJECT_DIR": r.dir, "AWS_TOKEN": "token", "AWS_PLAN_ROLE_ARN": roles + "agent-plan", "AWS_APPLY_ROLE_ARN": roles + "agent-apply",
		"CI_DEFAULT_BRANCH": "main", "CI_COMMIT_BRANCH": r.values["branch"],
	}
	for _, name := range []string{"AGENT_BASE_URL", "AGENT_PROJECT_ID", "AGENT_PROVIDER_COMMIT"} {
		variables[name] = r.values["vars."+name]
	}
	maps.Copy(variables, all.Variables)
	var expand func(string) string
	expand = func(name string) string { return os.Expand(variables[name], expand) }
	var env []string
	for name := range variables {
		env = append(env, name+"="+expand(name))
	}
	kept := []string{"main.tf", "backend-s3.tf"}
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
		mine := env
		if step.job.Environment.Name == "agent-"+step.name {
			mine = append(slices.Clip(env), "AGENT_ADMIN_KEY="+canary)
		}
		shown, ok := r.bash([]string{"bash"}, strings.Join(script, "\n"), mine)
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
