// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package demo

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

const pipelines = "guides/pipelines/"

func pipelineFiles() []string {
	return []string{
		pipelines + "main.tf", pipelines + "backend-http.tf", pipelines + "hcp-terraform.tf",
		pipelines + "github-actions.yml", pipelines + "gitlab-ci.yml", pipelines + "atlantis.yaml",
	}
}

// command is a line of a pipeline that calls the CLI.
var command = regexp.MustCompile(`(?m)^ *- (?:run: )?(?:exec )?terraform ([^#\n]*)`)

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

// checkout makes a fresh folder with the pipelines' configuration, as a runner does.
func (s *trial) checkout(t *testing.T) {
	t.Helper()
	s.dir = t.TempDir()
	for _, file := range []string{"main.tf", "backend-http.tf"} {
		s.write(t, file, s.read(t, pipelines+file))
	}
}

// What the pipelines of the guide call, in their order, on a fresh folder for
// each run, as a runner has it, with the state at a remote backend.
func TestAccPipelines(t *testing.T) {
	all := newTrials(t)
	all.since(t, "1.10.0", "1.11.0") // ephemeral variables
	for _, name := range []string{"github-actions.yml", "gitlab-ci.yml"} {
		t.Run(name, func(t *testing.T) {
			calls := all.calls(t, name)
			s := all.start(t, 0)
			s.config = all.plugin.MirrorConfig
			state := newStateServer(t)
			s.env = append(s.env, state.environment()...)
			for range 2 { // the second run sends nothing
				s.checkout(t)
				for _, call := range calls {
					s.call(t, call...)
				}
				if plan, err := os.ReadFile(filepath.Join(s.dir, "tfplan")); err != nil || strings.Contains(string(plan), canary) {
					t.Errorf("saved plan: %v, or it holds the key", err)
				}
			}
			if diff := cmp.Diff([][]string{{"Bring the API reference up to date"}}, s.prompts()); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("strict", func(t *testing.T) {
		s := all.start(t, time.Hour)
		s.write(t, "main.tf", strings.ReplaceAll(all.read(t, pipelines+"main.tf"), `"20m"`, `"10s"`))
		text, ok := s.try(t, "apply", "-auto-approve")
		if ok || !strings.Contains(text, "Resource postcondition failed") || !strings.Contains(text, " is active.") {
			t.Errorf("an apply whose job goes on: %t\n%s", ok, text)
		}
		s.service.SetStatus(s.service.Jobs()[0].ID, "completed")
		s.write(t, "main.tf", all.read(t, pipelines+"main.tf"))
		s.call(t, "apply", "-auto-approve")
		if diff := cmp.Diff([][]string{{"Bring the API reference up to date"}}, s.prompts()); diff != "" {
			t.Error(diff)
		}
	})
	// HCP Terraform itself cannot be had here: the configuration is validated.
	t.Run("hcp-terraform.tf", func(t *testing.T) {
		s := all.start(t, 0)
		s.config = all.plugin.MirrorConfig
		for _, file := range []string{"main.tf", "hcp-terraform.tf"} {
			s.write(t, file, all.read(t, pipelines+file))
		}
		s.call(t, "init", "-backend=false")
		s.call(t, "validate")
	})
}

// A runner is killed while it waits, and the next one gets a fresh checkout and
// the state as it is at the backend, with its lock. Red with one apply that
// sends and waits, and nothing that survives it.
func TestAccLostRunner(t *testing.T) {
	all := newTrials(t)
	all.since(t, "1.10.0", "1.11.0") // ephemeral variables
	if !canInterrupt {
		t.Skip("needs process groups: the CLI and the provider are killed together")
	}
	tests := []struct {
		name  string
		calls [][]string
		env   []string
		looks int    // at the job, in the last call, until it is killed
		says  string // what the last call of the next run shows
	}{
		{"github-actions.yml", all.calls(t, "github-actions.yml"), nil, 2, "Modifications complete"},
		{"gitlab-ci.yml", all.calls(t, "gitlab-ci.yml"), nil, 2, "Modifications complete"},
		{
			"one apply, and a data folder that survives",
			[][]string{{"init", "-input=false"}, {"apply", "-input=false", "-auto-approve"}},
			[]string{"TF_DATA_DIR=" + t.TempDir()}, 1, "Agent job of an earlier run adopted",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, state := all.start(t, time.Hour), newStateServer(t)
			s.config = all.plugin.MirrorConfig
			s.env = slices.Concat(s.env, state.environment(), test.env)
			last := len(test.calls) - 1
			s.checkout(t)
			for _, call := range test.calls[:last] {
				s.call(t, call...)
			}
			s.killWhileWaiting(t, test.looks, test.calls[last]...)
			s.service.SetStatus(s.service.Jobs()[0].ID, "completed")
			s.service.Inject(simulator.Fault{Kind: simulator.KindCreate, Times: -1, Status: http.StatusBadRequest})

			s.checkout(t)
			s.call(t, test.calls[0]...)
			if text, ok := s.try(t, test.calls[1]...); ok || !strings.Contains(text, "Error acquiring the state lock") {
				t.Errorf("with the lock of the lost run: %t\n%s", ok, text)
			}
			s.call(t, "force-unlock", "-force", state.lockID())
			var text string
			for _, call := range test.calls[1:] {
				text = s.call(t, call...)
			}
			if !strings.Contains(text, test.says) {
				t.Errorf("%q is not in:\n%s", test.says, text)
			}
			if diff := cmp.Diff([][]string{{"Bring the API reference up to date"}}, s.prompts()); diff != "" {
				t.Error(diff)
			}
		})
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
	if err := killGroup(cmd); err != nil {
		t.Error(err)
	}
	<-ended
}

// The two steps of the data source: a new prompt is sent before the wait.
func TestAccTwoSteps(t *testing.T) {
	all := newTrials(t)
	s := all.start(t, 2*time.Second)
	setup, _, _ := strings.Cut(all.read(t, "provider/provider.tf"), "resource ")
	s.write(t, "setup.tf", setup)
	text := all.read(t, "data-sources/agent_job/data-source_two_steps.tf")
	s.write(t, "main.tf", text)
	s.call(t, "apply", "-auto-approve")
	const first, second = "Write the changelog of the newest release", "Shorten the changelog"
	s.write(t, "main.tf", strings.ReplaceAll(text, first, second))
	s.call(t, "apply", "-auto-approve")
	if job := s.service.Jobs(); len(job) != 1 || job[0].Status != "completed" {
		t.Errorf("after the second wait: %+v", job)
	}
	s.call(t, "plan", "-detailed-exitcode")
	if diff := cmp.Diff([][]string{{first, second}}, s.prompts()); diff != "" {
		t.Error(diff)
	}
}

// stateServer keeps one state and its lock, as the http backend wants it.
type stateServer struct {
	t           *testing.T
	url         string
	mu          sync.Mutex
	state, lock []byte
}

func newStateServer(t *testing.T) *stateServer {
	t.Helper()
	s := &stateServer{t: t}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// environment is what the pipelines of the guide are given.
func (s *stateServer) environment() []string {
	return []string{"TF_HTTP_ADDRESS=" + s.url, "TF_HTTP_LOCK_ADDRESS=" + s.url, "TF_HTTP_UNLOCK_ADDRESS=" + s.url}
}

func (s *stateServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case r.Method == "LOCK" && s.lock != nil:
		w.WriteHeader(http.StatusLocked)
		_, _ = w.Write(s.lock)
	case r.Method == "LOCK":
		s.lock = body
	case r.Method == "UNLOCK":
		s.lock = nil
	case r.Method == http.MethodGet && s.state == nil:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
		_, _ = w.Write(s.state)
	case r.Method == http.MethodPost:
		s.state = body
	}
	if strings.Contains(string(body), canary) {
		s.t.Error("the key is in the state")
	}
}

// lockID is the id of the lock; "" is none.
func (s *stateServer) lockID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lock struct{ ID string }
	_ = json.Unmarshal(s.lock, &lock)
	return lock.ID
}
