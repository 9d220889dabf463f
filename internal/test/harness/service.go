// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package harness is what tests of the provider share: the simulated service, a
// configuration for it, and steps of acceptance tests.
package harness

import (
	"fmt"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// Nothing of the user's own work with the provider reaches a test.
func init() { tfcli.ClearEnv() }

// What every test uses: the key is searched for in all that is shown.
const (
	CanaryKey = "mint_canary-7f3a9b-do-not-print"
	Project   = "proj_1"
)

// Service is a simulated service behind a real HTTP server, or on pipes (Bubble).
type Service struct {
	*simulator.Server
	URL  string
	Wire *faultserver.Server // in a bubble
}

// NewService starts a service whose jobs go as script says; nil: 150 ms, then completed.
func NewService(t testing.TB, script func(prompt string, turn int) simulator.Script) *Service {
	t.Helper()
	if script == nil {
		script = Always(simulator.Script{Duration: 150 * time.Millisecond})
	}
	sim := NewSimulator(script)
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	return &Service{Server: sim, URL: server.URL}
}

// NewSimulator returns the service as a handler, with the key of the tests.
func NewSimulator(script func(prompt string, turn int) simulator.Script) *simulator.Server {
	return simulator.New(simulator.Options{Key: CanaryKey, Script: script})
}

// Bubble runs a test on a fake clock, with a service on pipes whose jobs go as script says.
func Bubble(t *testing.T, script func(prompt string, turn int) simulator.Script, test func(t *testing.T, s *Service, c *fakecli.CLI)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim := NewSimulator(script)
		wire := faultserver.New(t, sim)
		s := &Service{Server: sim, URL: wire.URL, Wire: wire}
		c := &fakecli.CLI{T: t}
		c.ConnectTo(t.Context(), provider.New("test", provider.Options{Dial: wire.Dial}), s.Attrs())
		c.State = c.Decode(nil)
		test(t, s, c)
	})
}

// Process is a provider process of a run of the CLI.
func Process(run cli.Run) *cli.Process {
	process := cli.This()
	process.Run = run
	return process
}

// Always gives every turn of every job the same script.
func Always(s simulator.Script) func(string, int) simulator.Script {
	return func(string, int) simulator.Script { return s }
}

// Config is a provider block with quick polls, and the given resources.
func (s *Service) Config(resources ...string) string {
	return fmt.Sprintf(`
provider "agent" {
  base_url   = %q
  admin_key  = %q
  project_id = %q
  poll {
    min_interval = "20ms"
    max_interval = "100ms"
  }
}
`, s.URL, CanaryKey, Project) + strings.Join(resources, "\n")
}

// Sent asserts the POSTs that the service has read since it was started.
func (s *Service) Sent(t *testing.T, creates, messages int) {
	t.Helper()
	if got := s.Counts(); got.Create != creates || got.Message != messages {
		t.Errorf("%d creates and %d messages reached the service, want %d and %d", got.Create, got.Message, creates, messages)
	}
}

// OnlyJob is the one job that the service has.
func (s *Service) OnlyJob(t *testing.T) simulator.Job {
	t.Helper()
	jobs := s.Jobs()
	if len(jobs) != 1 {
		t.Fatalf("the service has %d jobs, want 1", len(jobs))
	}
	return jobs[0]
}

// Attrs is the provider's configuration for the service, with quick polls.
func (s *Service) Attrs() fakecli.Attrs {
	return fakecli.Attrs{
		"base_url": s.URL, "admin_key": CanaryKey, "project_id": Project,
		"poll": fakecli.Attrs{"min_interval": "20ms", "max_interval": "100ms"},
	}
}

// Contains asserts that a text has all the others in it.
func Contains(t *testing.T, got string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(got, w) {
			t.Errorf("missing %q in:\n%s", w, got)
		}
	}
}

// Number is the value of an environment variable, or else byDefault.
func Number(t *testing.T, variable string, byDefault uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return byDefault
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}
