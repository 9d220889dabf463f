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

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

type contextKey struct{}

// The context of each call that a CLI makes for each job, and the kilobytes that hang
// on it, can be collected once the call has returned. Red without: releasable in any method of server.
func TestCallsAreForgotten(t *testing.T) {
	c := fakecli.New(t, harness.NewService(t, nil).Attrs())
	server := reflect.ValueOf(c.Server)
	for i := range server.NumMethod() {
		name, method := server.Type().Method(i).Name, server.Method(i)
		switch name {
		case "GetMetadata", "GetProviderSchema", "GetResourceIdentitySchemas", "GetFunctions", "ValidateProviderConfig", "ConfigureProvider", "StopProvider", // once
			"ListResource", "ValidateListResourceConfig", "MoveResourceState", "GenerateResourceConfig", // rarely, or once for many jobs
			"ValidateEphemeralResourceConfig", "OpenEphemeralResource", "RenewEphemeralResource", "CloseEphemeralResource": // there are none
			continue
		}
		var held []weak.Pointer[[1 << 16]byte]
		for range 10 {
			value := new([1 << 16]byte)
			held = append(held, weak.Make(value))
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), contextKey{}, value))
			if name == "InvokeAction" { // whose stream is read to its end
				_, _ = c.Invoke(ctx, "agent_start_job", fakecli.Attrs{"prompt": "write", "wait": fakecli.Attrs{"enabled": false}})
			} else { // an empty request will do
				method.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.New(method.Type().In(1).Elem())})
			}
			cancel()
		}
		runtime.GC()
		runtime.GC()
		if slices.ContainsFunc(held, func(value weak.Pointer[[1 << 16]byte]) bool { return value.Value() != nil }) {
			t.Errorf("the context of a call of %s is still held", name)
		}
	}
	runtime.KeepAlive(c.Server)
}
