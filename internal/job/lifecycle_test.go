// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

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
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

func TestAccCreateReadDestroy(t *testing.T) {
	s := harness.NewService(t, nil)
	harness.Run(t, resource.TestStep{
		Config: s.Config(harness.JobConfig("Add a quickstart")),
		ConfigStateChecks: []statecheck.StateCheck{
			harness.ExpectAttr("status", knownvalue.StringExact("completed")),
			harness.ExpectAttr("id", knownvalue.StringRegexp(regexp.MustCompile(`^job_`))),
			harness.ExpectAttr("pr_link", knownvalue.StringRegexp(regexp.MustCompile(`^https://`))),
			harness.ExpectAttr("project_id", knownvalue.StringExact(harness.Project)),
			harness.ExpectAttr("source", knownvalue.ObjectPartial(map[string]knownvalue.Check{"repository": knownvalue.NotNull()})),
			harness.ExpectAttr("model", knownvalue.NotNull()),
			harness.ExpectAttr("created_at", knownvalue.NotNull()),
			harness.ExpectAttr("archived_at", knownvalue.Null()),
		},
		Check: s.SentCheck(t, 1, 0),
	}, harness.ExpectNoChange(s.Config(harness.JobConfig("Add a quickstart"))))
	s.Sent(t, 1, 0)
}

func TestAccCompletedWithoutPullRequest(t *testing.T) {
	s := harness.NewService(t, harness.Always(simulator.Script{NoPullRequest: true}))
	config := s.Config(harness.JobConfig("Check the links"))
	harness.Run(t, resource.TestStep{
		Config:            config,
		ConfigStateChecks: []statecheck.StateCheck{harness.ExpectAttr("pr_link", knownvalue.Null())},
	}, harness.ExpectNoChange(config))
	s.Sent(t, 1, 0)
}

func TestAccArchived(t *testing.T) {
	s := harness.NewService(t, harness.Always(simulator.Script{Duration: 100 * time.Millisecond, Status: "archived"}))
	config := s.Config(harness.JobConfig("Tidy up"))
	harness.Run(t, resource.TestStep{
		Config: config,
		ConfigStateChecks: []statecheck.StateCheck{
			harness.ExpectAttr("status", knownvalue.StringExact("archived")),
			harness.ExpectAttr("archived_at", knownvalue.NotNull()),
		},
	}, harness.ExpectNoChange(config))
	s.Sent(t, 1, 0)
}

func TestAccCreatedAtWithoutZone(t *testing.T) {
	const odd = "2026-03-01T12:00:00"
	s := harness.NewService(t, harness.Always(simulator.Script{Extra: map[string]any{"createdAt": odd}}))
	config := s.Config(harness.JobConfig("Write"))
	harness.Run(t, resource.TestStep{
		Config:            config,
		ConfigStateChecks: []statecheck.StateCheck{harness.ExpectAttr("created_at", knownvalue.StringExact(odd))},
	}, harness.ExpectNoChange(config))
	s.Sent(t, 1, 0)
}

func TestAccTriggersReplace(t *testing.T) {
	s := harness.NewService(t, nil)
	with := func(spec string) string {
		return s.Config(harness.JobConfig("Write", fmt.Sprintf("triggers = { spec = %q }", spec)))
	}
	harness.Run(t,
		resource.TestStep{Config: with("1")},
		resource.TestStep{Config: with("2"), ConfigPlanChecks: harness.ExpectAction(plancheck.ResourceActionDestroyBeforeCreate)},
		harness.ExpectNoChange(with("2")),
	)
	s.Sent(t, 2, 0)
}

func TestAccTimeoutsOnlyChangeSendsNothing(t *testing.T) {
	s := harness.NewService(t, nil)
	var checks []plancheck.PlanCheck
	checks = append(checks, plancheck.ExpectResourceAction(harness.JobAddress, plancheck.ResourceActionUpdate))
	for _, name := range []string{"id", "status", "pr_link", "model", "created_at", "source"} {
		checks = append(checks, plancheck.ExpectKnownValue(harness.JobAddress, tfjsonpath.New(name), knownvalue.NotNull()))
	}
	gets := 0
	harness.Run(t,
		resource.TestStep{Config: s.Config(harness.JobConfig("Write"))},
		resource.TestStep{
			PreConfig:        func() { gets = s.Counts().Get },
			Config:           s.Config(harness.JobConfig("Write", `timeouts = { create = "5m" }`, `wait = { on_failure = "warn" }`)),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: checks},
		},
	)
	s.Sent(t, 1, 0)
	if gets == 0 {
		t.Error("the first step made no GET")
	}
}

func TestAccPostconditionOnStatus(t *testing.T) {
	s := harness.NewService(t, harness.Always(simulator.Script{Duration: time.Hour}))
	s.CutShort()
	harness.Run(t, resource.TestStep{
		Config: s.Config(harness.JobConfig("Write", `
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
