// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

func TestAccCreateReadDestroy(t *testing.T) {
	s := newService(t, nil)
	run(t, resource.TestStep{
		Config: s.Config(jobConfig("Add a quickstart")),
		ConfigStateChecks: []statecheck.StateCheck{
			expectAttr("status", knownvalue.StringExact("completed")),
			expectAttr("id", knownvalue.StringRegexp(regexp.MustCompile(`^job_`))),
			expectAttr("pr_link", knownvalue.StringRegexp(regexp.MustCompile(`^https://`))),
			expectAttr("project_id", knownvalue.StringExact(project)),
			expectAttr("source", knownvalue.ObjectPartial(map[string]knownvalue.Check{"repository": knownvalue.NotNull()})),
			expectAttr("model", knownvalue.NotNull()),
			expectAttr("created_at", knownvalue.NotNull()),
			expectAttr("archived_at", knownvalue.Null()),
		},
		Check: s.SentCheck(t, 1, 0),
	}, expectNoChange(s.Config(jobConfig("Add a quickstart"))))
	s.Sent(t, 1, 0)
}

func TestAccCompletedWithoutPullRequest(t *testing.T) {
	s := newService(t, always(simulator.Script{NoPullRequest: true}))
	config := s.Config(jobConfig("Check the links"))
	run(t, resource.TestStep{
		Config:            config,
		ConfigStateChecks: []statecheck.StateCheck{expectAttr("pr_link", knownvalue.Null())},
	}, expectNoChange(config))
	s.Sent(t, 1, 0)
}

func TestAccArchived(t *testing.T) {
	s := newService(t, always(simulator.Script{Duration: 100 * time.Millisecond, Status: "archived"}))
	config := s.Config(jobConfig("Tidy up"))
	run(t, resource.TestStep{
		Config: config,
		ConfigStateChecks: []statecheck.StateCheck{
			expectAttr("status", knownvalue.StringExact("archived")),
			expectAttr("archived_at", knownvalue.NotNull()),
		},
	}, expectNoChange(config))
	s.Sent(t, 1, 0)
}

func TestAccCreatedAtWithoutZone(t *testing.T) {
	const odd = "2026-03-01T12:00:00"
	s := newService(t, always(simulator.Script{Extra: map[string]any{"createdAt": odd}}))
	config := s.Config(jobConfig("Write"))
	run(t, resource.TestStep{
		Config:            config,
		ConfigStateChecks: []statecheck.StateCheck{expectAttr("created_at", knownvalue.StringExact(odd))},
	}, expectNoChange(config))
	s.Sent(t, 1, 0)
}

func TestAccTriggersReplace(t *testing.T) {
	s := newService(t, nil)
	with := func(spec string) string {
		return s.Config(jobConfig("Write", fmt.Sprintf("triggers = { spec = %q }", spec)))
	}
	run(t,
		resource.TestStep{Config: with("1")},
		resource.TestStep{Config: with("2"), ConfigPlanChecks: expectAction(plancheck.ResourceActionDestroyBeforeCreate)},
		expectNoChange(with("2")),
	)
	s.Sent(t, 2, 0)
}

func TestAccTimeoutsOnlyChangeSendsNothing(t *testing.T) {
	s := newService(t, nil)
	var checks []plancheck.PlanCheck
	checks = append(checks, plancheck.ExpectResourceAction(jobAddress, plancheck.ResourceActionUpdate))
	for _, name := range []string{"id", "status", "pr_link", "model", "created_at", "source"} {
		checks = append(checks, plancheck.ExpectKnownValue(jobAddress, tfjsonpath.New(name), knownvalue.NotNull()))
	}
	gets := 0
	run(t,
		resource.TestStep{Config: s.Config(jobConfig("Write"))},
		resource.TestStep{
			PreConfig:        func() { gets = s.Counts().Get },
			Config:           s.Config(jobConfig("Write", `timeouts = { create = "5m" }`, `wait = { on_failure = "warn" }`)),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: checks},
		},
	)
	s.Sent(t, 1, 0)
	if gets == 0 {
		t.Error("the first step made no GET")
	}
}

func TestAccPostconditionOnStatus(t *testing.T) {
	s := newService(t, always(simulator.Script{Duration: time.Hour}))
	s.CutShort()
	run(t, resource.TestStep{
		Config: s.Config(jobConfig("Write", `
  lifecycle {
    postcondition {
      condition     = contains(["completed", "archived"], self.status)
      error_message = "The job ended as ${self.status}."
    }
  }`)),
		ExpectError: regexp.MustCompile(`The job ended as\s+active\.`),
	})
	s.Sent(t, 1, 0)
}
