// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package plugin_test

import (
	"context"
	"reflect"
	"runtime"
	"slices"
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

// The context of each call that a CLI makes more than once, and the kilobytes that hang
// on it, can be collected once the call has returned. Red without: releasable in any method of server.
func TestCallsAreForgotten(t *testing.T) {
	s := harness.NewService(t, nil)
	c := fakecli.New(t, s.Attrs())
	job := attrs{"name": "a", "prompt": "write", "wait": attrs{"enabled": false}}
	if diags := c.Run(t.Context(), job); len(diags) > 0 {
		t.Fatal(fakecli.Text(diags))
	}
	identity := &tfprotov6.RawState{JSON: []byte(`{"project_id":"proj_1","id":"` + c.Get("id").(string) + `"}`)}
	held := map[string][]weak.Pointer[[1 << 16]byte]{}
	calls := map[string]func(context.Context){
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
			c.Forget()
			c.Plan(t.Context(), job)
			c.Apply(ctx, job)
		},
		"ReadDataSource": func(ctx context.Context) { _, _ = c.Data(ctx, attrs{"id": c.Get("id")}) },
		"ListResource":   func(ctx context.Context) { _, _ = c.List(ctx, true) },
		"InvokeAction":   func(ctx context.Context) { _, _ = c.Invoke(ctx, "agent_start_job", job) },
	}
	server := reflect.ValueOf(c.Server)
	for i := range server.NumMethod() { // an empty request will do for the rest
		name, method := server.Type().Method(i).Name, server.Method(i)
		if calls[name] == nil {
			calls[name] = func(ctx context.Context) {
				method.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.New(method.Type().In(1).Elem())})
			}
		}
	}
	leftOut := []string{"GetMetadata", "GetProviderSchema", "GetResourceIdentitySchemas", "GetFunctions", "ValidateProviderConfig", "ConfigureProvider", "StopProvider"} // called once
	if schemas := c.Schemas(); len(schemas.EphemeralResourceSchemas) == 0 {
		leftOut = append(leftOut, "ValidateEphemeralResourceConfig", "OpenEphemeralResource", "RenewEphemeralResource", "CloseEphemeralResource")
	}
	for _, name := range leftOut {
		delete(calls, name)
	}
	for name, call := range calls {
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
		if slices.ContainsFunc(values, func(value weak.Pointer[[1 << 16]byte]) bool { return value.Value() != nil }) {
			t.Errorf("the context of a call of %s is still held", name)
		}
	}
	runtime.KeepAlive(c.Server)
}
