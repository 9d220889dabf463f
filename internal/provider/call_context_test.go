// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"runtime"
	"testing"
	"weak"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/provider"
)

// A call's context, and the kilobytes that hang on it, can be collected once
// the call has returned. Red without: released.
func TestCallsAreForgotten(t *testing.T) {
	c := newCore(t, attrs{"base_url": "https://api.example.com", "admin_key": canaryKey, "project_id": project})
	server := provider.NewServer(provider.New("test", nil)())
	config := c.dynamic(object(c.resource, attrs{"prompt": "write"}))
	type key struct{}
	var held []weak.Pointer[[1 << 16]byte]
	for range 10 {
		value := new([1 << 16]byte)
		held = append(held, weak.Make(value))
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, value))
		if _, err := server.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{TypeName: "agent_job", Config: config}); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	runtime.GC()
	runtime.GC()
	for i, value := range held {
		if value.Value() != nil {
			t.Errorf("the context of call %d is still held", i)
		}
	}
	runtime.KeepAlive(server)
}
