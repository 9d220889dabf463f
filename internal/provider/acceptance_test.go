// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

const (
	canaryKey  = "mint_canary-7f3a9b-do-not-print"
	project    = "proj_1"
	jobAddress = "agent_job.test"
)

// service is a simulated service behind a real HTTP server, or on pipes (bubble).
type service struct {
	*simulator.Server
	url  string
	wire *faultserver.Server // of a bubble
}

// newService starts a service whose jobs go as script says; nil: 150 ms, then completed.
func newService(t testing.TB, script func(prompt string, turn int) simulator.Script) *service {
	t.Helper()
	if script == nil {
		script = func(string, int) simulator.Script { return simulator.Script{Duration: 150 * time.Millisecond} }
	}
	sim := newSimulator(script)
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	return &service{Server: sim, url: server.URL}
}

func newSimulator(script func(prompt string, turn int) simulator.Script) *simulator.Server {
	return simulator.New(simulator.Options{Key: canaryKey, Script: script})
}

// bubble runs a test on a fake clock, with a service on pipes whose jobs go as script says.
func bubble(t *testing.T, script func(prompt string, turn int) simulator.Script, test func(t *testing.T, s *service, c *core)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulator(script)
		wire := faultserver.New(t, sim, faultserver.Options{InMemory: true})
		s := &service{Server: sim, url: wire.URL, wire: wire}
		c := &core{t: t}
		c.connectTo(t.Context(), provider.New("test", provider.Options{Dial: wire.Dial}), s.attrs())
		c.state = c.decode(nil)
		test(t, s, c)
	})
}

// always gives every turn of every job the same script.
func always(s simulator.Script) func(string, int) simulator.Script {
	return func(string, int) simulator.Script { return s }
}

// config is a provider block with quick polls, and the given resources.
func (s *service) config(resources ...string) string {
	return fmt.Sprintf(`
provider "agent" {
  base_url   = %q
  admin_key  = %q
  project_id = %q
  poll       = { min_interval = "20ms", max_interval = "100ms" }
}
`, s.url, canaryKey, project) + strings.Join(resources, "\n")
}

// sent asserts the POSTs that the service has read since it was started.
func (s *service) sent(t *testing.T, creates, messages int) {
	t.Helper()
	got := s.Counts()
	if diff := cmp.Diff([2]int{creates, messages}, [2]int{got.Create, got.Message}); diff != "" {
		t.Errorf("creates and messages that reached the service (-want +got):\n%s", diff)
	}
}

// onlyJob is the one job that the service has.
func (s *service) onlyJob(t *testing.T) simulator.Job {
	t.Helper()
	jobs := s.Jobs()
	if len(jobs) != 1 {
		t.Fatalf("the service has %d jobs, want 1", len(jobs))
	}
	return jobs[0]
}

// cutShort lets the next wait end at once, with the job active in the state.
func (s *service) cutShort() { s.Inject(simulator.Fault{Kind: simulator.KindGet, Status: 401}) }

// attrs is the provider's configuration for the service, with quick polls.
func (s *service) attrs() attrs {
	return attrs{
		"base_url": s.url, "admin_key": canaryKey, "project_id": project,
		"poll": attrs{"min_interval": "20ms", "max_interval": "100ms"},
	}
}

func contains(t *testing.T, got string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(got, w) {
			t.Errorf("missing %q in:\n%s", w, got)
		}
	}
}
