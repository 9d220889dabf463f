// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package demo

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// What the pipelines of the guide call, in their order, on a fresh folder for
// each run, as a runner has it, with the state at a remote backend.
func TestAccPipelines(t *testing.T) {
	all := newTrials(t)
	all.since(t, "1.10.0", "1.11.0") // ephemeral variables
	for _, name := range []string{"github-actions.yml", "gitlab-ci.yml"} {
		t.Run(name, func(t *testing.T) {
			calls := command.FindAllStringSubmatch(all.read(t, pipelines+name), -1)
			if len(calls) < 3 {
				t.Fatalf("%d calls of the CLI", len(calls))
			}
			s := all.start(t, 0)
			s.config = all.plugin.MirrorConfig
			state := newStateServer(t)
			s.env = append(s.env, "TF_HTTP_ADDRESS="+state.URL, "TF_HTTP_LOCK_ADDRESS="+state.URL, "TF_HTTP_UNLOCK_ADDRESS="+state.URL)
			for range 2 { // the second run changes nothing
				s.dir = t.TempDir()
				for _, file := range []string{"main.tf", "backend-http.tf"} {
					s.write(t, file, all.read(t, pipelines+file))
				}
				for _, call := range calls {
					s.call(t, strings.Fields(call[1])...)
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
		s := all.start(t, 5*time.Second)
		s.write(t, "main.tf", strings.ReplaceAll(all.read(t, pipelines+"main.tf"), `"20m"`, `"2s"`))
		text, ok := s.try(t, "apply", "-auto-approve", "-no-color")
		if ok || !strings.Contains(text, "Resource postcondition failed") || !strings.Contains(text, " is active.") {
			t.Errorf("an apply whose job goes on: %t\n%s", ok, text)
		}
		s.write(t, "main.tf", all.read(t, pipelines+"main.tf"))
		s.call(t, "apply", "-auto-approve", "-no-color")
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
		s.call(t, "init", "-backend=false", "-no-color")
		s.call(t, "validate", "-no-color")
	})
}

// The two steps of the guide: a new prompt is sent before the wait.
func TestAccTwoSteps(t *testing.T) {
	all := newTrials(t)
	s := all.start(t, 2*time.Second)
	setup, _, _ := strings.Cut(all.read(t, "provider/provider.tf"), "resource ")
	s.write(t, "setup.tf", setup)
	text := all.read(t, "data-sources/agent_job/data-source_two_steps.tf")
	s.write(t, "main.tf", text)
	s.call(t, "apply", "-auto-approve", "-no-color")
	const first, second = "Write the changelog of the newest release", "Shorten the changelog"
	s.write(t, "main.tf", strings.ReplaceAll(text, first, second))
	s.call(t, "apply", "-auto-approve", "-no-color")
	if job := s.service.Jobs(); len(job) != 1 || job[0].Status != "completed" {
		t.Errorf("after the second wait: %+v", job)
	}
	s.call(t, "plan", "-detailed-exitcode", "-no-color")
	if diff := cmp.Diff([][]string{{first, second}}, s.prompts()); diff != "" {
		t.Error(diff)
	}
}

// newStateServer keeps one state, as the http backend wants it.
func newStateServer(t *testing.T) *httptest.Server {
	t.Helper()
	var mu sync.Mutex
	var state []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil:
			w.WriteHeader(http.StatusBadRequest)
		case r.Method == http.MethodGet && state == nil:
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodGet:
			_, _ = w.Write(state)
		case r.Method == http.MethodPost:
			state = body
		}
		if strings.Contains(string(body), canary) {
			t.Error("the key is in the state")
		}
	}))
	t.Cleanup(server.Close)
	return server
}
