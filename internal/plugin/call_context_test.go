// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package plugin_test

import (
	"context"
	"runtime"
	"testing"
	"weak"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

type (
	attrs      = fakecli.Attrs
	contextKey struct{}
)

// The context of each call that is made for a job, and the kilobytes that hang
// on it, can be collected once the call has returned. Red without: callThenRelease.
func TestCallsAreForgotten(t *testing.T) {
	s := harness.NewService(t, nil)
	c := fakecli.New(t, s.Attrs())
	job := attrs{"prompt": "write"}
	if diags := c.Run(t.Context(), job); len(diags) > 0 {
		t.Fatal(fakecli.Text(diags))
	}
	identity := &tfprotov6.RawState{JSON: []byte(`{"project_id":"proj_1","id":"` + c.Get("id").(string) + `"}`)}
	held := map[string][]weak.Pointer[[1 << 16]byte]{}
	for name, call := range map[string]func(context.Context){
		"ValidateResourceConfig": func(ctx context.Context) {
			_, _ = c.Server.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{TypeName: "agent_job", Config: c.Dynamic(fakecli.Object(c.Resource, job))})
		},
		"UpgradeResourceState": func(ctx context.Context) {
			_, _ = c.Server.UpgradeResourceState(ctx, &tfprotov6.UpgradeResourceStateRequest{TypeName: "agent_job", RawState: identity})
		},
		"UpgradeResourceIdentity": func(ctx context.Context) {
			_, _ = c.Server.UpgradeResourceIdentity(ctx, &tfprotov6.UpgradeResourceIdentityRequest{TypeName: "agent_job", RawIdentity: identity})
		},
		"ReadResource":       func(ctx context.Context) { c.Refresh(ctx) },
		"PlanResourceChange": func(ctx context.Context) { c.Plan(ctx, job) },
		"ApplyResourceChange": func(ctx context.Context) {
			waits := fakecli.With(job, attrs{"wait": attrs{"enabled": len(held["ApplyResourceChange"])%2 == 0}})
			c.Plan(t.Context(), waits)
			c.Apply(ctx, waits)
		},
	} {
		for range 10 {
			value := new([1 << 16]byte)
			held[name] = append(held[name], weak.Make(value))
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), contextKey{}, value))
			call(ctx)
			cancel()
		}
	}
	runtime.GC()
	runtime.GC()
	for name, values := range held {
		for i, value := range values {
			if value.Value() != nil {
				t.Errorf("the context of call %d of %s is still held", i, name)
			}
		}
	}
	runtime.KeepAlive(c.Server)
}
