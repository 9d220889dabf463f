// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
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
	files       map[string]string // of the checkout, unless it is a clone
	clone       string
	bucket      *bucket
	kill        syscall.Signal // sent to the apply once it waits; 0: none
	meanwhile   func()         // called before that
}

// startPipeline is start for runners that have the state, and a journal, in folders outside of their checkouts.
func startPipeline(t *testing.T, jobs time.Duration) *runner {
	t.Helper()
	onLinux(t)
	s := start(t, jobs)
	needs(t, "1.10.0", "1.11.0") // ephemeral variables, and use_lockfile
	dir := t.TempDir()
	h := &host{isClosed: map[string]bool{}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	r := &runner{trial: s, host: h, bin: filepath.Join(dir, "bin"), origin: filepath.Join(dir, "origin"), with: map[string]string{}, files: map[string]string{}}
	url := strings.TrimPrefix(s.env[0], "AGENT_BASE_URL=")
	r.with["url"], r.with["backend"] = url, fmt.Sprintf("backend \"local\" {\n  path = %q\n}", filepath.Join(dir, "terraform.tfstate"))
	r.values = map[string]string{
		"secrets.AGENT_ADMIN_KEY": canary, "github.token": "token", "github.server_url": "https://github.com", "github.repository": "example/docs",
		"github.ref_name": "v1", "github.run_id": "101", "github.sha": "5f7079d", "github.event.before": "", "inputs.since": "", "inputs.forget": "", "runner.os": "x", "runner.arch": "x",
		"vars.AWS_ROLE_ARN": "", "vars.ARM_CLIENT_ID": "", "vars.ARM_SUBSCRIPTION_ID": "", "vars.ARM_TENANT_ID": "", "cancelled()": "",
		"github.api_url": server.URL, "var.CI_API_V4_URL": server.URL, "var.CI_JOB_TOKEN": "token", "var.AGENT_GITLAB_TOKEN": "token",
		"var.CI_SERVER_URL": "https://github.com", "var.CI_PIPELINE_URL": "https://gitlab.com/example/docs/-/pipelines/101", "var.CI_PROJECT_ID": "42",
		"var.CI_DEFAULT_BRANCH": "main", "var.CI_COMMIT_SHA": "5f7079d", "var.CI_COMMIT_BEFORE_SHA": "", "var.CI_MERGE_REQUEST_DIFF_BASE_SHA": "",
		"var.AWS_PLAN_ROLE_ARN": roles + "agent-plan", "var.AWS_APPLY_ROLE_ARN": roles + "agent-apply", "var.AWS_TOKEN": "token",
	}
	r.push("main")
	s.env = []string{"AGENT_JOURNAL_URL=" + t.TempDir() + "?state=demo"} // the scripts set the rest
	// A stand-in for the provider's repository: make install leaves what it left for these tests.
	s.dir = r.origin
	s.write("Makefile", "install:\n\t@mkdir -p $$XDG_CACHE_HOME/terraform-provider-agent; cp -R '"+filepath.Dir(withInit)+"' $$XDG_CACHE_HOME/terraform-provider-agent/installed; "+
		"sed -i 's|"+filepath.Dir(withInit)+"|'$$XDG_CACHE_HOME'/terraform-provider-agent/installed|' $$XDG_CACHE_HOME/terraform-provider-agent/installed/mirror.tfrc\n")
	for _, name := range []string{"run.sh", "main.tf"} {
		s.write("examples/"+pipelines+name, read(t, pipelines+name))
	}
	r.use(cli)
	r.values["job.workflow_sha"] = r.commit("A commit")
	r.with["commit"] = r.values["job.workflow_sha"]
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

// push and pull say what starts the next runs.
func (r *runner) push(branch string) {
	maps.Copy(r.values, map[string]string{
		"github.event_name": "push", "github.event.pull_request": "", "github.event.pull_request.number": "", "github.event.pull_request.base.sha": "",
		"github.event.pull_request.head.repo.fork": "",
		"var.CI_PIPELINE_SOURCE":                   "push", "var.CI_COMMIT_BRANCH": branch, "var.CI_MERGE_REQUEST_IID": "",
	})
}

func (r *runner) pull(number string) {
	maps.Copy(r.values, map[string]string{
		"github.event_name": "pull_request", "github.event.pull_request": "true", "github.event.pull_request.number": number,
		"var.CI_PIPELINE_SOURCE": "merge_request_event", "var.CI_COMMIT_BRANCH": "", "var.CI_MERGE_REQUEST_IID": number,
	})
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
	if r.clone != "" {
		r.git("clone", "-q", r.clone, ".")
		r.git("checkout", "-q", r.values["github.sha"])
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
	if r.kill != 0 && strings.Contains(script, `run.sh" apply`) {
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
			Env                     map[string]string
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

// value is that of an expression: alternatives of terms.
func (r *runner) value(text string) (value string) {
	r.Helper()
	for all := range strings.SplitSeq(text, " || ") {
		for term := range strings.SplitSeq(all, " && ") {
			if value = r.term(term); value == "" || value == "false" {
				break
			}
		}
		if value != "" && value != "false" {
			break
		}
	}
	return value
}

// term is that of a literal, a name, one that is negated, or a comparison.
func (r *runner) term(text string) string {
	r.Helper()
	if parts := comparison.FindStringSubmatch(text); parts != nil {
		return fmt.Sprint((r.term(parts[1]) == r.term(parts[3])) == (parts[2] == "=="))
	} else if name, ok := strings.CutPrefix(text, "!"); ok {
		value := r.term(name)
		return fmt.Sprint(value == "" || value == "false")
	} else if strings.HasPrefix(text, "'") {
		return strings.Trim(text, "'")
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
	for name, input := range called.On.Call.Inputs {
		defer func(before string) { r.values["inputs."+name] = before }(r.values["inputs."+name])
		r.values["inputs."+name] = cmp.Or(r.with[name], r.expand(trigger.Jobs["agent"].With[name]), input.Default)
	}
	r.checkout()
	job, files := called.Jobs["run"], r.TempDir()
	env := []string{
		"GITHUB_ACTIONS=true", "GITHUB_OUTPUT=" + files + "/output", "GITHUB_STEP_SUMMARY=" + files + "/summary", "GITHUB_RUN_ID=" + r.values["github.run_id"],
		"GITHUB_SERVER_URL=https://github.com", "GITHUB_API_URL=" + r.values["github.api_url"], "GITHUB_REPOSITORY=example/docs", "GITHUB_SHA=" + r.values["github.sha"],
	}
	for name, value := range job.Env {
		env = append(env, name+"="+r.expand(value))
	}
	for _, step := range job.Steps {
		r.values["success()"], r.values["job.status"] = fmt.Sprint(failed == ""), map[bool]string{true: "success", false: "failure"}[failed == ""]
		if strings.HasPrefix(step.Uses, "actions/cache@") {
			_, err := os.Stat(r.dir + "-agent")
			r.values["steps.cache.outputs.cache-hit"] = fmt.Sprint(err == nil)
		}
		if strings.HasPrefix(step.Uses, "aws-actions/configure-aws-credentials@") && r.bucket != nil {
			env = append(env, r.bucket.assume(r.expand(job.Environment)).env()...)
		}
		condition := strings.TrimSuffix(strings.TrimPrefix(step.If, "${{ "), " }}")
		if step.Run == "" || failed != "" && condition != "!cancelled()" || condition != "" && r.value(condition) != "true" {
			continue
		}
		all := slices.Clip(env)
		for name, value := range step.Env {
			all = append(all, name+"="+r.expand(value))
		}
		if hasKey := strings.Contains(strings.Join(all, "\n"), canary); hasKey != (step.Name == "Plan" || step.Name == "Apply") {
			r.Errorf("step %q has the key: %t", step.Name, hasKey)
		}
		shown, ok := r.bash(r.expand(step.Run), all)
		text += shown
		if !ok && failed == "" {
			failed = step.Name
		}
	}
	r.handOn(files + "/output")
	return text, failed
}

// handOn reads what a run hands on to the next job.
func (r *runner) handOn(file string) {
	outputs, _ := os.ReadFile(file)
	for line := range strings.Lines(string(outputs)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		r.values["needs.agent.outputs."+strings.ToLower(strings.TrimPrefix(name, "AGENT_"))] = value
	}
}

// githubNext runs a job of a workflow that comes after github's, and returns the name of the step that failed.
func (r *runner) githubNext(caller, name string) (failed string) {
	r.Helper()
	var all workflow
	readYAML(r.T, caller, &all)
	for _, step := range all.Jobs[name].Steps {
		var env []string
		for _, variables := range []map[string]string{all.Jobs[name].Env, step.Env} {
			for name, value := range variables {
				env = append(env, name+"="+r.expand(value))
			}
		}
		if text, ok := r.bash(step.Run, env); !ok {
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
		Variables    map[string]any
		BeforeScript []string `yaml:"before_script"`
		Script       []string
		AfterScript  []string `yaml:"after_script"`
		Rules        []struct{ If string }
	}
	all := map[string]job{}
	readYAML(r.T, pipelines+"gitlab.yml", &including)
	header, body, _ := strings.Cut(read(r.T, pipelines+"gitlab-template.yml"), "\n---\n")
	if err := errors.Join(yaml.Unmarshal([]byte(header), &spec), yaml.Unmarshal([]byte(body), &all)); err != nil {
		r.Fatal(err)
	}
	interpolate := func(text string) string {
		return input.ReplaceAllStringFunc(text, func(found string) string {
			name := input.FindStringSubmatch(found)[1]
			return cmp.Or(r.with[name], including.Include[0].Inputs[name], spec.Spec.Inputs[name].Default)
		})
	}
	r.checkout()
	for _, name := range []string{"agent-provider", "$[[ inputs.name ]]: plan", "$[[ inputs.name ]]: apply"} {
		this := all[name]
		base := all[this.Extends]
		if !slices.ContainsFunc(this.Rules, func(rule struct{ If string }) bool {
			return r.value(strings.ReplaceAll(variable.ReplaceAllString(interpolate(rule.If), "var.$1"), `"`, "'")) == "true"
		}) {
			continue
		}
		variables := map[string]string{"CI_JOB_STATUS": "success", "AGENT_ADMIN_KEY": canary}
		for name, value := range r.values {
			if name, ok := strings.CutPrefix(name, "var."); ok {
				variables[name] = value
			}
		}
		var expand func(string) string
		expand = func(name string) string { return os.Expand(variables[name], expand) }
		for _, more := range []map[string]any{base.Variables, this.Variables} {
			for name, value := range more {
				if raw, ok := value.(map[string]any); ok { // with expand: false
					value = raw["value"]
				}
				variables[name] = interpolate(fmt.Sprint(value))
			}
		}
		run := func(script ...[]string) bool {
			var env []string
			for name := range variables {
				env = append(env, name+"="+expand(name))
			}
			shown, ok := r.bash(interpolate(strings.Join(slices.Concat(script...), "\n")), env)
			text += shown
			return ok
		}
		if !run(base.BeforeScript, this.Script) {
			failed, variables["CI_JOB_STATUS"] = name[strings.LastIndex(name, " ")+1:], "failed"
		}
		if !run(base.AfterScript) {
			r.Errorf("the report failed:\n%s", text)
		}
		r.handOn(filepath.Join(r.dir, "agent.env"))
	}
	return text, failed
}

// host stands in for GitHub's and GitLab's API, for one pull request that brought each commit, and GitLab's state.
type host struct {
	mu       sync.Mutex
	comments []string
	isClosed map[string]bool // by the number of a pull request
	state    []byte
}

const thePull = "7"

var (
	listed   = regexp.MustCompile(`^/(repos/example/docs|projects/42)/(issues|merge_requests)/7/(comments|notes)$`)
	edited   = regexp.MustCompile(`^/(repos/example/docs/issues/comments|projects/42/merge_requests/7/notes)/100$`)
	ofCommit = regexp.MustCompile(`/commits/\w+/(pulls|merge_requests)$`)
	ofPull   = regexp.MustCompile(`^/(?:repos/example/docs/pulls|projects/example/docs/merge_requests)/(\d+)$`)
)

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var sent struct{ Body string }
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &sent)
	reply := func(value any) { _ = json.NewEncoder(w).Encode(value) }
	match := ofPull.FindStringSubmatch(r.URL.Path)
	switch path, isState := r.URL.Path, strings.HasPrefix(r.URL.Path, "/projects/42/terraform/state/agent-documentation"); {
	case isState && strings.HasSuffix(path, "/lock"):
	case isState && r.Method == http.MethodPost:
		h.state = body
	case isState && h.state == nil:
		w.WriteHeader(http.StatusNoContent)
	case isState:
		_, _ = w.Write(h.state)
	case r.Header.Get("Authorization") != "Bearer token" && r.Header.Get("Private-Token") != "token":
		http.Error(w, "no token", http.StatusUnauthorized)
	case ofCommit.MatchString(path):
		reply([]map[string]int{{"number": 7, "iid": 7}})
	case listed.MatchString(path) && r.Method == http.MethodPost:
		h.comments = append(h.comments, sent.Body)
	case listed.MatchString(path):
		all := []map[string]any{}
		for i, text := range h.comments {
			all = append(all, map[string]any{"id": i + 100, "body": text})
		}
		reply(all)
	case edited.MatchString(path) && (r.Method == http.MethodPatch || r.Method == http.MethodPut):
		h.comments[0] = sent.Body
	case match != nil:
		reply(map[string]string{"state": map[bool]string{true: "closed", false: "open"}[h.isClosed[match[1]]]})
	default:
		http.NotFound(w, r)
	}
}
