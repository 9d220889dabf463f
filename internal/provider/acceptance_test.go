// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

const (
	canaryKey = "mint_canary-7f3a9b-do-not-print"
	project   = "proj_1"
	job       = "agent_job.test"
)

func providerFactories() map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"agent": func() (tfprotov6.ProviderServer, error) { return provider.NewServer(provider.New("test", nil)()), nil },
	}
}

// service is a simulated service behind a real HTTP server.
type service struct {
	*simulator.Server
	url string
}

// newService starts a service whose jobs go as script says; nil: 150 ms, then completed.
func newService(t testing.TB, script func(prompt string, turn int) simulator.Script) *service {
	t.Helper()
	if script == nil {
		script = func(string, int) simulator.Script { return simulator.Script{Duration: 150 * time.Millisecond} }
	}
	sim := simulator.New(simulator.Options{
		Key:    canaryKey,
		Script: func(_, prompt string, turn int) simulator.Script { return script(prompt, turn) },
	})
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	return &service{Server: sim, url: server.URL}
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

// jobConfig is agent_job.test with a prompt and more arguments, one a line.
func jobConfig(prompt string, arguments ...string) string {
	return fmt.Sprintf("resource \"agent_job\" \"test\" {\n  prompt = %q\n  %s\n}\n", prompt, strings.Join(arguments, "\n  "))
}

// sent asserts the POSTs that the service has read since it was started.
func (s *service) sent(t *testing.T, creates, messages int) {
	t.Helper()
	got := s.Counts()
	if diff := cmp.Diff([2]int{creates, messages}, [2]int{got.Create, got.Message}); diff != "" {
		t.Errorf("creates and messages that reached the service (-want +got):\n%s", diff)
	}
}

// sentCheck is sent as a check of a step.
func (s *service) sentCheck(t *testing.T, creates, messages int) resource.TestCheckFunc {
	return func(*terraform.State) error {
		s.sent(t, creates, messages)
		return nil
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

// run runs the steps against one service. Not parallel with others: the CLI's
// processes fill the machine as it is.
func run(t *testing.T, steps ...resource.TestStep) {
	t.Helper()
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: providerFactories(), Steps: steps})
}
