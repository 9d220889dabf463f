// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// BenchmarkRefreshAndPlan is what a plan costs for each job that has ended:
// three of the calls that the CLI makes, without gRPC.
func BenchmarkRefreshAndPlan(b *testing.B) {
	s := harness.NewService(b, harness.Always(simulator.Script{}))
	c := fakecli.New(b, s.Attrs())
	config := attrs{"prompt": "Add a quickstart for the Python SDK"}
	c.Run(b.Context(), config)
	wanted := fakecli.Object(c.Resource, config)
	state, dynamic := c.Dynamic(c.State), c.Dynamic(wanted)
	proposed := c.Dynamic(c.Proposed(wanted, c.State))
	for name, call := range map[string]func() (any, error){
		"validate": func() (any, error) {
			return c.Server.ValidateResourceConfig(b.Context(), &tfprotov6.ValidateResourceConfigRequest{TypeName: "agent_job", Config: dynamic})
		},
		"read": func() (any, error) {
			return c.Server.ReadResource(b.Context(), &tfprotov6.ReadResourceRequest{TypeName: "agent_job", CurrentState: state, Private: c.Private, CurrentIdentity: c.Identity})
		},
		"plan": func() (any, error) {
			return c.Server.PlanResourceChange(b.Context(), &tfprotov6.PlanResourceChangeRequest{
				TypeName: "agent_job", PriorState: state, ProposedNewState: proposed, Config: dynamic, PriorPrivate: c.Private, PriorIdentity: c.Identity,
			})
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
