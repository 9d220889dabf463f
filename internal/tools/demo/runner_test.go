// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// runner runs the scripts of a pipeline as they stand in its YAML, in one workspace, where the installed provider is
// what a cache brings back.
type runner struct {
	*trial

	host        *host
	bin, origin string
	with        map[string]string // inputs that replace those of the caller
	values      map[string]string // of expressions and variables
	event       map[string]any    // GitHub's payload
	files       map[string]string // of the checkout
	bucket      *bucket
	kill        syscall.Signal // sent to the apply once it waits; 0: none
	meanwhile   func()         // called before that
}

// startPipeline is start for runners whose state is behind HTTP and whose journal is in a folder. The checkout has the
// configuration of the guide.
func startPipeline(t *testing.T, jobs time.Duration) *runner {
	t.Helper()
	onLinux(t)
	s := start(t, jobs)
	needs(t, "1.10.0", "1.11.0") // ephemeral variables, and use_lockfile
	dir := t.TempDir()
	h := &host{head: "5f7079d", pulls: map[string]string{}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	r := &runner{trial: s, host: h, bin: filepath.Join(dir, "bin"), origin: filepath.Join(dir, "origin"), with: map[string]string{}}
	r.values = map[string]string{
		"secrets.AGENT_ADMIN_KEY": canary, "runner.os": "x", "runner.arch": "x", "always()": "true",
		"vars.AWS_ROLE_ARN": "", "vars.ARM_CLIENT_ID": "", "vars.ARM_SUBSCRIPTION_ID": "", "vars.ARM_TENANT_ID": "",
		"vars.AGENT_BASE_URL": strings.TrimPrefix(s.env[0], "AGENT_BASE_URL="), "vars.AGENT_PROJECT_ID": "",
		"vars.AGENT_MAX_NEW_JOBS": "", "vars.AGENT_MAX_MESSAGES": "",
		"github.token": "token", "github.server_url": "https://github.com", "github.repository": "example/docs", "github.api_url": server.URL,
		"github.sha": "5f7079d", "github.ref_name": "main", "github.run_id": "101", "github.run_attempt": "1", "inputs.forget": "",
		"var.CI_API_V4_URL": server.URL, "var.CI_SERVER_URL": "https://github.com", "var.AGENT_GITLAB_TOKEN": "token", "var.CI_PROJECT_ID": "42",
		"var.CI_PIPELINE_ID": "101", "var.CI_PIPELINE_URL": "https://gitlab.com/example/docs/-/pipelines/101", "var.CI_PROJECT_VISIBILITY": "private",
		"var.CI_DEFAULT_BRANCH": "main", "var.CI_COMMIT_SHA": "5f7079d", "var.CI_COMMIT_REF_NAME": "main",
		"var.AWS_PLAN_ROLE_ARN": roles + "agent-plan", "var.AWS_APPLY_ROLE_ARN": roles + "agent-apply", "var.AWS_TOKEN": "token",
	}
	r.on("push")
	s.env = []string{"AGENT_JOURNAL_URL=" + t.TempDir() + "?state=demo"} // the scripts set the rest
	r.configure(r.values["vars.AGENT_BASE_URL"], server.URL)
	// A stand-in for the provider's repository: make install leaves what it left for these tests.
	s.dir = r.origin
	s.write("Makefile", "install:\n\t@mkdir -p $$XDG_CACHE_HOME/terraform-provider-agent; cp -R '"+filepath.Dir(withInit)+"' $$XDG_CACHE_HOME/terraform-provider-agent/installed\n")
	s.write("examples/"+pipelines+"run.sh", read(t, pipelines+"run.sh"))
	r.use(cli)
	commit, ok := r.bash("git init -q && git add . && git -c user.name=x -c user.email=x@example.com -c commit.gpgsign=false commit -qm x && git rev-parse HEAD", nil)
	if !ok {
		t.Fatal(commit)
	}
	r.with["commit"] = strings.TrimSpace(commit)
	r.values["job.workflow_sha"] = r.with["commit"]
	s.dir = filepath.Join(dir, "workspace")
	r.values["github.workspace"], r.values["var.CI_PROJECT_DIR"] = s.dir, s.dir
	return r
}

func onLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the pipelines' scripts run on Linux")
	}
}

var backend = regexp.MustCompile(`(?s)  backend "s3" \{.*?\n  \}\n`)

// configure makes the configuration of the guide that of the checkout, for a service and a backend that are here.
func (r *runner) configure(service, state string) {
	r.Helper()
	text := backend.ReplaceAllLiteralString(read(r.T, pipelines+"agent.tf"), fmt.Sprintf("  backend \"http\" {\n    address        = %[1]q\n"+
		"    lock_address   = %[1]q\n    unlock_address = %[1]q\n    retry_max      = 0\n  }\n", state+"/state"))
	r.values["vars.AGENT_BASE_URL"] = service
	r.files = map[string]string{"openapi.yaml": openapi, "agent/main.tf": strings.ReplaceAll(text, "https://api.mintlify.com", service)}
}

// on says what starts the next runs.
func (r *runner) on(event string) {
	pull, ref := map[string]any{"number": thePull, "state": "open"}, "branch"
	r.event = map[string]any{"repository": map[string]any{"private": true}}
	r.values["var.CI_PIPELINE_SOURCE"], r.values["var.CI_COMMIT_BRANCH"], r.values["var.CI_MERGE_REQUEST_IID"] = event, "main", ""
	switch event {
	case "pull_request", "pull_request_target", "closed":
		r.event["pull_request"] = pull
		if event == "closed" {
			event, pull["state"] = "pull_request", "closed"
		}
		r.values["var.CI_PIPELINE_SOURCE"], r.values["var.CI_COMMIT_BRANCH"], r.values["var.CI_MERGE_REQUEST_IID"] = "merge_request_event", "", thePull
	case "merge_group":
		r.event["merge_group"] = map[string]any{"head_sha": "5f7079d"}
	case "tag":
		event, ref = "push", "tag"
		r.values["var.CI_PIPELINE_SOURCE"], r.values["var.CI_COMMIT_BRANCH"] = "push", ""
	}
	r.values["github.event_name"], r.values["github.ref_type"] = event, ref
}

// use makes a CLI the scripts' terraform.
func (r *runner) use(c tfcli.CLI) {
	r.Helper()
	if err := errors.Join(os.RemoveAll(r.bin), os.Mkdir(r.bin, 0o700), os.Symlink(c.Path, filepath.Join(r.bin, "terraform"))); err != nil {
		r.Fatal(err)
	}
	r.tool("apk", "")
}

// tool makes a shell script a command of the scripts.
func (r *runner) tool(name, script string) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.bin, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		r.Fatal(err)
	}
}

// checkout empties the workspace, as each run finds it, but for what a cache has kept.
func (r *runner) checkout() {
	r.Helper()
	for _, name := range []string{r.dir, r.dir + "-agent-work", r.dir + "-agent-source"} {
		if err := os.RemoveAll(name); err != nil {
			r.Fatal(err)
		}
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		r.Fatal(err)
	}
	for name, text := range r.files {
		r.write(name, text)
	}
}

// bash runs a script, and returns what it shows and whether it succeeded.
func (r *runner) bash(script string, env []string) (text string, ok bool) {
	r.Helper()
	file := filepath.Join(r.TempDir(), "script")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		r.Fatal(err)
	}
	cmd := exec.CommandContext(r.Context(), "bash", "-euo", "pipefail", file)
	cmd.Env = slices.Concat(slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return tfcli.IsForeign(entry) || strings.HasPrefix(entry, "AWS_") // of the S3 server's owner
	}), r.env, []string{
		"PATH=" + r.bin + ":" + os.Getenv("PATH"), "CHECKPOINT_DISABLE=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url." + r.origin + ".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/agentjobs/terraform-provider-agent",
	}, env)
	var shown bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = r.dir, &shown, &shown, grace
	leadGroup(cmd)
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if r.kill != 0 && strings.Contains(script, `run.sh" run`) {
		r.cutShort(cmd, ended)
	}
	ok = <-ended == nil
	if text = shown.String(); strings.Contains(text, canary) {
		r.Errorf("it shows the key:\n%s", text)
	}
	return text, ok
}

// cutShort sends a command the signal once it has read its job.
func (r *runner) cutShort(cmd *exec.Cmd, ended chan error) {
	r.Helper()
	for r.service.Counts().Get == 0 {
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
			Inputs map[string]struct{ Default string }
		} `yaml:"workflow_call"`
	}
	Jobs map[string]struct {
		Environment string
		Env, With   map[string]string
		Steps       []struct {
			ID, Name, If, Run, Uses string
			Env, With               map[string]string
		}
	}
}

func readYAML(t *testing.T, file string, to any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, file)), to); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

var (
	expression = regexp.MustCompile(`\$\{\{ (.*?) \}\}`)
	comparison = regexp.MustCompile(`^(.+) ([!=]=) (.+)$`)
	input      = regexp.MustCompile(`\$\[\[ inputs\.(\w+) \]\]`)
	variable   = regexp.MustCompile(`\$(\w+)`)
)

// expand replaces the expressions in a text of a workflow.
func (r *runner) expand(text string) string {
	r.Helper()
	return expression.ReplaceAllStringFunc(text, func(found string) string { return r.value(expression.FindStringSubmatch(found)[1]) })
}

// environ is the environment that variables of a workflow make.
func (r *runner) environ(all ...map[string]string) (env []string) {
	r.Helper()
	for _, variables := range all {
		for name, value := range variables {
			env = append(env, name+"="+r.expand(value))
		}
	}
	return env
}

// value is that of an expression: alternatives of terms, which are literals, names and comparisons. What is false is "".
func (r *runner) value(text string) (value string) {
	r.Helper()
	for all := range strings.SplitSeq(text, " || ") {
		value = ""
		for i, term := range strings.Split(all, " && ") {
			if i == 0 || value != "" {
				value = r.term(term)
			}
		}
		if value != "" {
			break
		}
	}
	return value
}

func (r *runner) term(text string) string {
	r.Helper()
	if parts := comparison.FindStringSubmatch(text); parts != nil {
		return map[bool]string{true: "true"}[(r.term(parts[1]) == r.term(parts[3])) == (parts[2] == "==")]
	} else if strings.HasPrefix(text, "'") {
		return strings.Trim(text, "'")
	} else if names, ok := strings.CutPrefix(text, "github.event."); ok {
		var value any = r.event
		for name := range strings.SplitSeq(names, ".") {
			object, _ := value.(map[string]any)
			value = object[name]
		}
		return map[bool]string{false: fmt.Sprint(value)}[value == nil]
	}
	value, ok := r.values[text]
	if !ok {
		r.Fatalf("no value for %s", text)
	}
	return value
}

// github runs a workflow that calls agent.yml, and returns what its steps show, and the name of the one that failed.
func (r *runner) github(caller string) (text, failed string) {
	r.Helper()
	var trigger, called workflow
	readYAML(r.T, caller, &trigger)
	readYAML(r.T, "../.github/workflows/agent.yml", &called)
	defer func(before map[string]string) { r.values = before }(maps.Clone(r.values))
	for name, input := range called.On.Call.Inputs {
		r.values["inputs."+name] = cmp.Or(r.with[name], r.expand(trigger.Jobs["agent"].With[name]), input.Default)
	}
	r.checkout()
	job, files := called.Jobs["run"], r.TempDir()
	env := append(r.githubEnv(files), r.environ(job.Env)...)
	for name, value := range job.Env {
		r.values["env."+name] = r.expand(value)
	}
	for _, step := range job.Steps {
		if strings.HasPrefix(step.Uses, "actions/cache@") {
			_, err := os.Stat(r.dir + "-agent")
			r.values["steps.cache.outputs.cache-hit"] = fmt.Sprint(err == nil)
		}
		r.values["job.status"] = map[bool]string{true: "success", false: "failure"}[failed == ""]
		r.values["steps.report.outputs.kept"] = r.outputs(files + "/output")["kept"]
		if failed != "" && !strings.HasPrefix(step.If, "always()") || step.If != "" && r.value(step.If) == "" {
			continue
		}
		if strings.HasPrefix(step.Uses, "aws-actions/configure-aws-credentials@") {
			env = append(env, r.bucket.assume(r.expand(job.Environment)).env()...)
		} else if strings.HasPrefix(step.Uses, "actions/upload-artifact@") {
			r.keep(r.expand(step.With["path"]))
		}
		all := slices.Concat(env, r.environ(step.Env))
		if hasKey := strings.Contains(strings.Join(all, "\n"), canary); hasKey && step.Name != "Run" {
			r.Errorf("step %q has the key", step.Name)
		}
		shown, ok := r.bash(r.expand(step.Run), all)
		text += shown
		if !ok && failed == "" {
			failed = step.Name
		}
	}
	r.host.ran(r.expand(job.Environment), r.outputs(files+"/output"))
	return text, failed
}

// githubEnv is what GitHub sets in each step, with its files in a folder.
func (r *runner) githubEnv(files string) []string {
	r.Helper()
	payload, err := json.Marshal(r.event)
	if err = errors.Join(err, os.WriteFile(files+"/event", payload, 0o600)); err != nil {
		r.Fatal(err)
	}
	env := []string{"GITHUB_ACTIONS=true", "GITHUB_OUTPUT=" + files + "/output", "GITHUB_STEP_SUMMARY=" + files + "/summary", "GITHUB_EVENT_PATH=" + files + "/event"}
	for name, value := range r.values {
		if name, ok := strings.CutPrefix(name, "github."); ok && name != "token" {
			env = append(env, "GITHUB_"+strings.ToUpper(name)+"="+value)
		}
	}
	return env
}

// outputs reads what a run hands on to the next job.
func (r *runner) outputs(file string) map[string]string {
	text, _ := os.ReadFile(file)
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		all[strings.ToLower(strings.TrimPrefix(name, "AGENT_"))] = value
	}
	return all
}

// keep notes the artifact of a state.
func (r *runner) keep(folder string) {
	text, _ := os.ReadFile(filepath.Join(folder, "errored.tfstate"))
	r.host.kept = string(text)
}

// githubNext runs a job of a workflow that comes after github's, and returns the name of the step that failed.
func (r *runner) githubNext(caller, name string) (failed string) {
	r.Helper()
	var all workflow
	readYAML(r.T, caller, &all)
	for _, step := range all.Jobs[name].Steps {
		if text, ok := r.bash(step.Run, r.environ(all.Jobs[name].Env, step.Env)); !ok {
			r.Log(text)
			return step.Name
		}
	}
	return ""
}

// gitlab runs the jobs of the template that gitlab.yml includes, in one workspace, and returns what they show and the
// name of the one that failed.
func (r *runner) gitlab(string) (text, failed string) {
	r.Helper()
	var including struct {
		Include []struct{ Inputs map[string]string }
	}
	var spec struct {
		Spec struct {
			Inputs map[string]struct{ Default string }
		}
	}
	type job struct {
		Extends      string
		Variables    map[string]string
		Environment  struct{ Name string }
		BeforeScript []string `yaml:"before_script"`
		Script       []string
		AfterScript  []string `yaml:"after_script"`
		Rules        []struct{ If string }
	}
	readYAML(r.T, pipelines+"gitlab.yml", &including)
	header, body, _ := strings.Cut(read(r.T, pipelines+"gitlab-template.yml"), "\n---\n")
	err := yaml.Unmarshal([]byte(header), &spec)
	body = input.ReplaceAllStringFunc(body, func(found string) string {
		name := input.FindStringSubmatch(found)[1]
		return cmp.Or(r.with[name], including.Include[0].Inputs[name], spec.Spec.Inputs[name].Default)
	})
	all := map[string]job{}
	if err = errors.Join(err, yaml.Unmarshal([]byte(body), &all)); err != nil {
		r.Fatal(err)
	}
	r.checkout()
	_ = os.Rename(r.dir+"-agent", r.dir+"/.agent") // as the cache has it
	directory := cmp.Or(r.with["directory"], including.Include[0].Inputs["directory"])
	for _, name := range []string{"agent-provider", "agent plan: " + directory, "agent apply: " + directory} {
		this := all[name]
		base := all[this.Extends]
		if !slices.ContainsFunc(this.Rules, func(rule struct{ If string }) bool {
			return r.value(strings.ReplaceAll(variable.ReplaceAllString(rule.If, "var.$1"), `"`, "'")) != ""
		}) {
			continue
		}
		variables := map[string]string{"CI_JOB_STATUS": "success", "CI_JOB_NAME": name, "AGENT_ADMIN_KEY": r.values["secrets.AGENT_ADMIN_KEY"]}
		for name, value := range r.values {
			if name, ok := strings.CutPrefix(name, "var."); ok {
				variables[name] = value
			}
		}
		maps.Copy(variables, base.Variables)
		maps.Copy(variables, this.Variables)
		var expand func(string) string
		expand = func(name string) string { return os.Expand(variables[name], expand) }
		run := func(script ...[]string) bool {
			var env []string
			for name := range variables {
				env = append(env, name+"="+expand(name))
			}
			shown, ok := r.bash(strings.Join(slices.Concat(script...), "\n"), env)
			text += shown
			return ok
		}
		if !run(base.BeforeScript, slices.Concat(this.Script, base.Script)) {
			failed, variables["CI_JOB_STATUS"] = name, "failed"
		}
		if len(base.AfterScript) > 0 {
			if !run(base.AfterScript) {
				r.Errorf("the report failed:\n%s", text)
			}
			r.host.ran(this.Environment.Name, r.outputs(filepath.Join(r.dir, "agent.env")))
			r.keep(filepath.Join(r.dir, "errored"))
		}
	}
	return text, map[bool]string{true: "Run"}[failed != ""]
}
