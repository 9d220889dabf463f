// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
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

// runner runs the scripts of a pipeline as they stand in its YAML, in one workspace, with the variables that their host sets.
// What else the YAML says is up to the host: actionlint checks that of GitHub.
type runner struct {
	*trial

	host   *host
	bin    string            // the tools of the scripts
	values map[string]string // of variables, and of GitHub's expressions without what is before the last dot; others are empty
	event  map[string]any    // GitHub's payload
	files  map[string]string // of the checkout
	kill   syscall.Signal    // sent to the apply once it waits; 0: none
}

func newRunner(t *testing.T, s *trial) *runner {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the pipelines' scripts run on Linux")
	}
	s.T, s.dir = t, filepath.Join(t.TempDir(), "workspace")
	r := &runner{trial: s, host: &host{head: "5f7079d", pulls: map[string]string{}}, bin: t.TempDir()}
	server := httptest.NewServer(r.host)
	t.Cleanup(server.Close)
	r.values = map[string]string{
		"GITHUB_API_URL": server.URL, "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "example/docs",
		"GITHUB_SHA": "5f7079d", "GITHUB_REF_NAME": "main", "GITHUB_RUN_ID": "101", "GITHUB_RUN_ATTEMPT": "1",
		"CI_API_V4_URL": server.URL, "CI_SERVER_URL": "https://github.com", "CI_PROJECT_ID": "42", "CI_DEFAULT_BRANCH": "main",
		"CI_COMMIT_SHA": "5f7079d", "CI_COMMIT_REF_NAME": "main", "CI_PIPELINE_ID": "101",
		"CI_PIPELINE_URL": "https://gitlab.com/example/docs/-/pipelines/101", "CI_PROJECT_VISIBILITY": "private",
		"AGENT_GITLAB_TOKEN": "token", "AWS_TOKEN": "token", "CI_PROJECT_DIR": s.dir,
		"AGENT_ADMIN_KEY": canary, "token": "token", "workspace": s.dir, "directory": "agent",
	}
	r.on("push")
	return r
}

// startPipeline is start for runners whose state is behind HTTP and whose journal is in a folder. The checkout has the
// configuration of the guide.
func startPipeline(t *testing.T, jobs time.Duration) *runner {
	t.Helper()
	s := start(t, jobs)
	needs(t, "1.10.0", "1.11.0") // use_lockfile
	service := strings.TrimPrefix(s.env[0], "AGENT_BASE_URL=")
	s.env = []string{"AGENT_JOURNAL_URL=" + t.TempDir() + "?state=demo"} // the scripts set the rest
	r := newRunner(t, s)
	r.values["AGENT_BASE_URL"] = service
	state := fmt.Sprintf("  backend \"http\" {\n    address = %[1]q\n    lock_address = %[1]q\n    unlock_address = %[1]q\n    retry_max = 0\n  }\n",
		r.values["GITHUB_API_URL"]+"/state")
	text := backend.ReplaceAllLiteralString(read(t, pipelines+"agent.tf"), state)
	r.files = map[string]string{"openapi.yaml": openapi, "agent/main.tf": strings.ReplaceAll(text, "https://api.mintlify.com", service)}
	r.tool("terraform", "exec '"+cli.Path+"' \"$@\"")
	r.tool("apk", "")
	r.tool("make", "to=$XDG_CACHE_HOME/terraform-provider-agent; mkdir -p $to; cp -R '"+filepath.Dir(withInit)+"' $to/installed")
	if text, ok := r.runSh("install"); !ok {
		t.Fatal(text)
	}
	return r
}

var backend = regexp.MustCompile(`(?s)  backend "\w+" \{.*?\n  \}\n`)

// on says what starts the next runs.
func (r *runner) on(event string) {
	r.event = map[string]any{"repository": map[string]any{"private": true}}
	ref, source, branch, number := "branch", event, "main", ""
	switch event {
	case "pull_request", "pull_request_target", "closed":
		pull := map[string]any{"number": "7", "state": "open"}
		if event == "closed" {
			event, pull["state"] = "pull_request", "closed"
		}
		r.event["pull_request"] = pull
		source, branch, number = "merge_request_event", "", "7"
	case "merge_group":
		r.event["merge_group"] = map[string]any{"head_sha": "5f7079d"}
	case "tag":
		event, ref, source, branch = "push", "tag", "push", ""
	}
	maps.Copy(r.values, map[string]string{
		"GITHUB_EVENT_NAME": event, "GITHUB_REF_TYPE": ref, "CI_PIPELINE_SOURCE": source, "CI_COMMIT_BRANCH": branch, "CI_MERGE_REQUEST_IID": number,
	})
}

// tool makes a shell script a command of the scripts.
func (r *runner) tool(name, script string) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		r.Fatal(err)
	}
}

// checkout empties the workspace, as each run finds it.
func (r *runner) checkout() {
	r.Helper()
	if err := errors.Join(os.RemoveAll(r.dir), os.RemoveAll(r.dir+"-agent-work"), os.MkdirAll(r.dir, 0o700)); err != nil {
		r.Fatal(err)
	}
	for name, text := range r.files {
		r.write(name, text)
	}
}

// runSh calls a function of run.sh as on GitHub.
func (r *runner) runSh(args string) (text string, ok bool) {
	r.Helper()
	file, err := filepath.Abs(filepath.Join(root, "examples", pipelines, "run.sh"))
	if err = errors.Join(err, os.MkdirAll(r.dir, 0o700)); err != nil {
		r.Fatal(err)
	}
	return r.bash("bash '"+file+"' "+args, append(r.onGitHub(r.TempDir()), "AGENT_DIR="+r.dir+"-agent", "TOKEN=token", "DIRECTORY=agent"))
}

// bash runs a script, and returns what it shows and whether it succeeded.
func (r *runner) bash(script string, env []string) (text string, ok bool) {
	r.Helper()
	cmd := exec.CommandContext(r.Context(), "bash", "-euo", "pipefail", "-c", script)
	common := append(slices.DeleteFunc(os.Environ(), tfcli.IsForeign), "PATH="+r.bin+":"+os.Getenv("PATH"), "CHECKPOINT_DISABLE=1")
	cmd.Env = slices.Concat(common, r.env, env)
	var shown bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = r.dir, &shown, &shown, grace
	leadGroup(cmd)
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	if r.kill != 0 && strings.Contains(script, `run.sh" run`) {
		for begin := time.Now(); r.service.Counts().Get == 0 && time.Since(begin) < time.Minute; {
			time.Sleep(10 * time.Millisecond)
		}
		// As GitHub interrupts: the process of the step alone, and all are killed after a while.
		_ = cmd.Process.Signal(r.kill)
		pause := map[bool]time.Duration{true: 10 * time.Second}[r.kill == syscall.SIGINT]
		defer time.AfterFunc(pause, func() { _ = signalGroup(cmd, syscall.SIGKILL) }).Stop()
	}
	ok = cmd.Wait() == nil
	if text = shown.String(); strings.Contains(text, canary) {
		r.Errorf("it shows the key:\n%s", text)
	}
	return text, ok
}

// onGitHub is what GitHub sets in each step, with its files in a folder.
func (r *runner) onGitHub(folder string) []string {
	r.Helper()
	payload, err := json.Marshal(r.event)
	if err = errors.Join(err, os.WriteFile(folder+"/event", payload, 0o600)); err != nil {
		r.Fatal(err)
	}
	env := []string{
		"GITHUB_ACTIONS=true", "GITHUB_OUTPUT=" + folder + "/output", "GITHUB_STEP_SUMMARY=" + folder + "/summary", "GITHUB_EVENT_PATH=" + folder + "/event",
	}
	for name, value := range r.values {
		if strings.HasPrefix(name, "GITHUB_") {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// github runs agent.yml, and returns what it shows, and whether it succeeds.
func (r *runner) github() (text string, ok bool) {
	r.Helper()
	r.checkout()
	folder := r.TempDir()
	text, ok = r.job("../.github/workflows/agent.yml", "run", r.onGitHub(folder)...)
	r.host.ran(folder+"/output", r.dir+"-agent-work/errored/errored.tfstate")
	return text, ok
}

var expression = regexp.MustCompile(`\$\{\{ (?:[\w.]+\.)?(.*?) \}\}`)

// job runs the scripts of a job of a workflow, but for that which installs the provider.
func (r *runner) job(workflow, name string, common ...string) (text string, ok bool) {
	r.Helper()
	var all struct {
		Jobs map[string]struct {
			Env   map[string]string
			Steps []struct {
				Name, If, Run string
				Env           map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(r.T, workflow)), &all); err != nil {
		r.Fatal(err)
	}
	ok = true
	for _, step := range all.Jobs[name].Steps {
		if step.Run == "" || step.Name == "Install" || !ok && step.If != "always()" {
			continue
		}
		r.values["status"] = map[bool]string{true: "success", false: "failure"}[ok]
		env := slices.Clone(common)
		for _, variables := range []map[string]string{all.Jobs[name].Env, step.Env} {
			for name, text := range variables {
				value := func(found string) string { return r.values[expression.FindStringSubmatch(found)[1]] }
				env = append(env, name+"="+expression.ReplaceAllStringFunc(text, value))
			}
		}
		if strings.Contains(strings.Join(env, "\n"), canary) && step.Name != "Run" {
			r.Errorf("step %q has the key", step.Name)
		}
		shown, succeeds := r.bash(step.Run, env)
		text, ok = text+shown, ok && succeeds
	}
	return text, ok
}

// gitlab runs a job of the template that gitlab.yml includes, and returns what it shows, and whether it succeeds.
func (r *runner) gitlab() (text string, ok bool) {
	r.Helper()
	_, body, _ := strings.Cut(read(r.T, pipelines+"gitlab-template.yml"), "\n---\n")
	var all map[string]struct {
		Variables    map[string]string
		BeforeScript []string `yaml:"before_script"`
		Script       []string
		AfterScript  []string `yaml:"after_script"`
	}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(body, "$[[ inputs.directory ]]", "agent")), &all); err != nil {
		r.Fatal(err)
	}
	r.checkout()
	_ = os.Rename(r.dir+"-agent", r.dir+"/.agent") // as the artifact of the job that installs it
	name := "agent apply: agent"
	if r.values["CI_MERGE_REQUEST_IID"] != "" {
		name = "agent plan: agent"
	}
	base, variables := all[".agent agent"], maps.Clone(r.values)
	variables["CI_JOB_NAME"], variables["AGENT_JOURNAL_FORGET"] = name, r.values["forget"]
	maps.Copy(variables, base.Variables)
	maps.Copy(variables, all[name].Variables)
	run := func(status string, scripts ...[]string) (shown string, ok bool) {
		env := []string{"CI_JOB_STATUS=" + status}
		for name, value := range variables {
			if !strings.HasPrefix(name, "GITHUB_") {
				env = append(env, name+"="+os.Expand(value, func(name string) string { return variables[name] }))
			}
		}
		return r.bash(strings.Join(slices.Concat(scripts...), "\n"), env)
	}
	text, ok = run("", base.BeforeScript, base.Script)
	reported, succeeds := run(map[bool]string{true: "success", false: "failed"}[ok], base.AfterScript)
	if text += reported; !succeeds {
		r.Errorf("the report failed:\n%s", text)
	}
	r.host.ran(r.dir+"/agent.env", r.dir+"/errored/errored.tfstate")
	return text, ok
}
