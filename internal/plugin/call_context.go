// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package plugin

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// The framework keeps a reference to the context of every call until the
// process ends (as of 1.19), and with it the loggers and the gRPC stream: 20 KB
// for each call, most of the heap with a thousand jobs. So it gets a context that
// releases the call's context when the call returns.

// callContext acts as another context until it is released, and then as a cancelled
// one without values.
type callContext struct {
	of atomic.Pointer[context.Context]
}

// callThenRelease makes a call with a context that releases ctx when the call returns.
func callThenRelease[Request, Response any](ctx context.Context, req Request, call func(context.Context, Request) (Response, error)) (Response, error) {
	ctx, release := releasable(ctx)
	defer release()
	return call(ctx, req)
}

func releasable(ctx context.Context) (_ context.Context, release func()) {
	c := new(callContext)
	c.of.Store(&ctx)
	return c, func() { c.of.Store(nil) }
}

func (c *callContext) context() context.Context {
	if ctx := c.of.Load(); ctx != nil {
		return *ctx
	}
	return cancelled{}
}

func (c *callContext) Deadline() (time.Time, bool) { return c.context().Deadline() }
func (c *callContext) Done() <-chan struct{}       { return c.context().Done() }
func (c *callContext) Err() error                  { return c.context().Err() }
func (c *callContext) Value(key any) any           { return c.context().Value(key) }

// cancelled is a context that was cancelled.
type cancelled struct{}

func (cancelled) Deadline() (time.Time, bool) { return time.Time{}, false }
func (cancelled) Err() error                  { return context.Canceled }
func (cancelled) Value(any) any               { return nil }

func (cancelled) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// The other calls that are made for each job.

func (s *server) ValidateResourceConfig(ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return callThenRelease(ctx, req, s.ProviderServerWithActions.ValidateResourceConfig)
}

// UpgradeResourceState passes each object of the state to the provider. No other call
// does that for a tainted object without a refresh, because Terraform plans its
// replacement without a prior state.
func (s *server) UpgradeResourceState(ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	if req.RawState != nil {
		s.observer.StateRead(ctx, req.TypeName, req.RawState.JSON)
	}
	return callThenRelease(ctx, req, s.ProviderServerWithActions.UpgradeResourceState)
}

func (s *server) UpgradeResourceIdentity(ctx context.Context, req *tfprotov6.UpgradeResourceIdentityRequest) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	return callThenRelease(ctx, req, s.ProviderServerWithActions.UpgradeResourceIdentity)
}

func (s *server) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return callThenRelease(ctx, req, s.ProviderServerWithActions.ReadResource)
}

func (s *server) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	return callThenRelease(ctx, req, s.ProviderServerWithActions.PlanResourceChange)
}
