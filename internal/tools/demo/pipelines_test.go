// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

const pipelines = "guides/pipelines/"

func pipelineFiles() []string {
	return []string{
		pipelines + "main.tf", pipelines + "two-applies.tf", pipelines + "backend-http.tf",
		pipelines + "github-actions.yml", pipelines + "gitlab-ci.yml", pipelines + "atlantis.yaml",
	}
}

// command is a line of a pipeline or script that calls the CLI.
var command = regexp.MustCompile(`(?m)^ *(?:- )?(?:run: )?(?:exec )?terraform ([^#\n]*)`)

const (
	oneApply   = pipelines + "main.tf"
	twoApplies = pipelines + "two-applies.tf" // in place of the resource in main.tf
)

// calls are the calls of the CLI in a pipeline, in their order.
func (s trials) calls(t *testing.T, pipeline string) [][]string {
	t.Helper()
	var calls [][]string
	for _, call := range command.FindAllStringSubmatch(s.read(t, pipelines+pipeline), -1) {
		calls = append(calls, strings.Fields(call[1]))
	}
	if len(calls) < 3 {
		t.Fatalf("%d calls of the CLI", len(calls))
	}
	return calls
}

// main is the pipelines' configuration, with what a file has in place of its resource.
func (s *trial) main(t *testing.T, file string) string {
	t.Helper()
	text := s.read(t, oneApply)
	if file != oneApply {
		setup, rest, _ := strings.Cut(text, "resource ")
		text = setup + s.read(t, file)
		if strings.HasPrefix(file, recipes) && strings.Contains(text, `resource "agent_job"`) { // not the module
			_, outputs, _ := strings.Cut(rest, "\n}\n")
			text += outputs + s.read(t, recipes+"notify.tf")
		}
	}
	return text
}

// checkout makes a fresh folder with the pipelines' configuration, as a runner does.
func (s *trial) checkout(t *testing.T, file string) {
	t.Helper()
	s.dir = t.TempDir()
	s.write(t, "main.tf", s.main(t, file))
	s.write(t, "backend-http.tf", s.read(t, pipelines+"backend-http.tf"))
}

// namedFolder is a journal that outlives the runners, as the pipelines' bucket does.
func namedFolder(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		for _, file := range filesIn(t, dir, ".json") {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil || strings.Contains(string(text), canary) || strings.Contains(string(text), "API reference") {
				t.Errorf("journal: %v, or it holds the key or the prompt: %s", err, text)
			}
		}
	})
	return []string{"AGENT_JOURNAL_URL=" + filepath.Join(dir, "journal")}
}

// What the pipelines and recipes of the guide call, on a fresh folder for each
// run, as a runner has it, with the state at a remote backend. A run for the
// same event as the one before sends nothing.
//
// Red without: triggers in a recipe. The next event sends nothing, or a message, then.
func TestAccPipelines(t *testing.T) {
	t.Parallel()
	all := newTrials(t)
	all.since(t, "1.10.0", "1.11.0") // ephemeral variables
	const reference, spelling = "Bring the API reference up to date", "Correct the spelling in the API reference"
	tests := []struct {
		pipeline, file string
		event          string   // an expression or file that differs between runs
		values         []string // of the event, one for each run
		want           [][]string
	}{
		{"github-actions.yml", oneApply, "", []string{"", ""}, [][]string{{reference}}},
		{"gitlab-ci.yml", oneApply, "", []string{"", ""}, [][]string{{reference}}},
		{"two-applies.sh", twoApplies, "", []string{"", ""}, [][]string{{reference}}},
		{"github-actions.yml", recipes + "schedule.tf", "github.run_id", []string{"101", "101", "102"}, [][]string{{spelling}, {spelling}}},
		{"github-actions.yml", recipes + "release.tf", "github.ref_name", []string{"v1.0.0", "v1.0.0", "v1.1.0"}, [][]string{
			{"Update the API reference for v1.0.0"}, {"Update the API reference for v1.1.0"},
		}},
		{"github-actions.yml", recipes + "openapi.tf", "openapi.json", []string{"{}", "{}", `{"openapi": "3.1.0"}`}, [][]string{
			{reference + " with openapi.json"}, {reference + " with openapi.json"},
		}},
	}
	for _, test := range tests {
		t.Run(test.pipeline+"/"+path.Base(test.file), func(t *testing.T) {
			t.Parallel()
			s := all.start(t, 0)
			s.config = all.plugin.MirrorConfig
			s.env = slices.Concat(s.env, newStateServer(t).environment())
			if test.file != twoApplies {
				s.env = append(s.env, namedFolder(t)...)
			}
			for _, value := range test.values {
				s.checkout(t, test.file)
				s.write(t, "openapi.json", value)
				run := *s
				if recipe, ok := strings.CutPrefix(test.file, recipes); ok {
					run.env = slices.Concat(s.env, all.workflowEnv(t, recipes+strings.TrimSuffix(recipe, ".tf")+".yml", map[string]string{test.event: value}))
				}
				for _, call := range all.calls(t, test.pipeline) {
					run.call(t, call...)
				}
				if plan, err := os.ReadFile(filepath.Join(s.dir, "tfplan")); err != nil || strings.Contains(string(plan), canary) {
					t.Errorf("saved plan: %v, or it holds the key", err)
				}
			}
			if diff := cmp.Diff(test.want, s.prompts()); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("strict", func(t *testing.T) {
		t.Parallel()
		s := all.start(t, time.Hour)
		s.write(t, "main.tf", strings.ReplaceAll(all.read(t, pipelines+"main.tf"), `"20m"`, `"10s"`))
		text, ok := s.try(t, "apply", "-auto-approve")
		if ok || !strings.Contains(text, "Resource postcondition failed") || !strings.Contains(text, " is active.") {
			t.Errorf("an apply whose job keeps running: %t\n%s", ok, text)
		}
		s.service.SetStatus(s.service.Jobs()[0].ID, "completed")
		s.write(t, "main.tf", all.read(t, pipelines+"main.tf"))
		s.call(t, "apply", "-auto-approve")
		if diff := cmp.Diff([][]string{{"Bring the API reference up to date"}}, s.prompts()); diff != "" {
			t.Error(diff)
		}
	})
}

// A runner is killed while it waits, and the next one gets a fresh checkout and
// the state as it is at the backend, with its lock.
//
// Red without: a journal or a second apply. One apply sends again then.
func TestAccLostRunner(t *testing.T) {
	t.Parallel()
	all := newTrials(t)
	const takenOver = "Agent job of an earlier run taken over"
	oneLine := [][]string{{"init", "-input=false"}, {"apply", "-input=false", "-auto-approve"}}
	tests := []struct {
		name, form string
		calls      [][]string
		env        []string
		looks      int    // at the job, in the last call, until it is killed
		says       string // what the last call of the next run shows
	}{
		{"github-actions.yml", oneApply, all.calls(t, "github-actions.yml"), namedFolder(t), 1, takenOver},
		{"gitlab-ci.yml", oneApply, all.calls(t, "gitlab-ci.yml"), namedFolder(t), 1, takenOver},
		{"two-applies.sh", twoApplies, all.calls(t, "two-applies.sh"), nil, 2, "Modifications complete"},
		{"a data folder that survives", oneApply, oneLine, []string{"TF_DATA_DIR=" + t.TempDir()}, 1, takenOver},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			all.loseRunner(t, test.form, test.calls, test.env, test.looks, test.says)
		})
	}
}

// The same with a bucket.
//
// Red without: AGENT_JOURNAL_URL. The second runner's create is refused then.
func TestAccLostRunner_S3(t *testing.T) {
	t.Parallel()
	url := os.Getenv("AGENT_TEST_S3")
	if url == "" {
		t.Skip("AGENT_TEST_S3 is not set: internal/tools/s3.sh runs this with a real S3 server")
	}
	all := newTrials(t)
	prefix := fmt.Sprintf("/agent-journal/%s?", rand.Text())
	all.loseRunner(t, oneApply, all.calls(t, "github-actions.yml"),
		[]string{"AGENT_JOURNAL_URL=" + strings.Replace(url, "?", prefix, 1)}, 1, "Agent job of an earlier run taken over")
}

func (s trials) loseRunner(t *testing.T, form string, calls [][]string, env []string, looks int, says string) {
	t.Helper()
	s.since(t, "1.10.0", "1.11.0") // ephemeral variables
	if !canInterrupt {
		t.Skip("needs process groups: the CLI and the provider are killed together")
	}
	r, state := s.start(t, time.Hour), newStateServer(t)
	r.config = s.plugin.MirrorConfig
	r.env = slices.Concat(r.env, state.environment(), env)
	last := len(calls) - 1
	r.checkout(t, form)
	for _, call := range calls[:last] {
		r.call(t, call...)
	}
	r.killWhileWaiting(t, looks, calls[last]...)
	r.service.SetStatus(r.service.Jobs()[0].ID, "completed")
	r.service.Inject(simulator.Fault{Kind: simulator.KindCreate, Times: -1, Status: http.StatusBadRequest})

	r.checkout(t, form)
	r.call(t, calls[0]...)
	if text, ok := r.try(t, calls[1]...); ok || !strings.Contains(text, "Error acquiring the state lock") {
		t.Errorf("with the lock of the lost run: %t\n%s", ok, text)
	}
	r.call(t, "force-unlock", "-force", state.lockID())
	var text string
	for _, call := range calls[1:] {
		text = r.call(t, call...)
	}
	if !strings.Contains(text, says) {
		t.Errorf("%q is not in:\n%s", says, text)
	}
	if diff := cmp.Diff([][]string{{"Bring the API reference up to date"}}, r.prompts()); diff != "" {
		t.Error(diff)
	}
}

// killWhileWaiting calls the CLI and kills it, with the provider, once that has
// looked at the job so often.
func (s *trial) killWhileWaiting(t *testing.T, looks int, args ...string) {
	t.Helper()
	cmd := s.cli.Command(t.Context(), s.config, args...)
	cmd.Dir, cmd.Env = s.dir, append(cmd.Env, s.env...)
	cmd.WaitDelay = grace
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	leadGroup(cmd)
	looks += s.service.Counts().Get
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for s.service.Counts().Get < looks {
		select {
		case err := <-ended:
			t.Fatalf("ended by itself: %v\n%s", err, &text)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := signalGroup(cmd, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	<-ended
}
