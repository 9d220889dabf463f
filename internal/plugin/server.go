// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package plugin

import (
	"context"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// NewServer returns the protocol server of a provider, for Terraform and OpenTofu. The
// end of ctx cancels its calls.
func NewServer(ctx context.Context, agent provider.Provider) tfprotov6.ProviderServer {
	return newServer(ctx, providerserver.NewProtocol6(agent)().(frameworkServer)) //nolint:errcheck // better a panic than without
}

// frameworkServer is what the framework's server has of the protocol.
type frameworkServer interface {
	tfprotov6.ProviderServerWithActions
	tfprotov6.ListResourceServer
}

func newServer(ctx context.Context, framework frameworkServer) *server {
	stopped, stop := context.WithCancel(ctx)
	ended, end := context.WithCancel(ctx)
	end()
	return &server{
		ProviderServerWithActions: framework, ListResourceServer: framework,
		stopped: stopped, stop: stop, ended: ended,
	}
}

// server works around bugs in the framework and the CLIs.
type server struct {
	tfprotov6.ProviderServerWithActions // the framework's server
	tfprotov6.ListResourceServer        // the same

	stopped  context.Context // cancelled when the CLI requests a stop
	stop     context.CancelFunc
	ended    context.Context // what a call's context becomes when the call has returned
	invoking sync.RWMutex    // read-locked by each action in progress
}

// stoppable returns a context that is cancelled when the CLI requests a stop. The CLI
// requests only one, and a call that it has just started may arrive later, or may not
// be known to the framework yet, which then does not cancel it.
func (s *server) stoppable(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	release := context.AfterFunc(s.stopped, cancel)
	if s.stopped.Err() != nil { // at once: AfterFunc starts a goroutine
		cancel()
	}
	return ctx, func() { release(); cancel() }
}

// ApplyResourceChange starts nothing and waits for nothing after a stop.
func (s *server) ApplyResourceChange(
	ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	ctx, cancel := s.stoppable(ctx)
	defer cancel()
	return callThenRelease(ctx, s, req, s.ProviderServerWithActions.ApplyResourceChange)
}

func (s *server) ValidateResourceConfig(
	ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest,
) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return callThenRelease(ctx, s, req, s.ProviderServerWithActions.ValidateResourceConfig)
}

func (s *server) UpgradeResourceState(
	ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	return callThenRelease(ctx, s, req, s.ProviderServerWithActions.UpgradeResourceState)
}

func (s *server) UpgradeResourceIdentity(
	ctx context.Context, req *tfprotov6.UpgradeResourceIdentityRequest,
) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	return callThenRelease(ctx, s, req, s.ProviderServerWithActions.UpgradeResourceIdentity)
}

func (s *server) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return callThenRelease(ctx, s, req, s.ProviderServerWithActions.ReadResource)
}

func (s *server) PlanResourceChange(
	ctx context.Context, req *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	return callThenRelease(ctx, s, req, s.ProviderServerWithActions.PlanResourceChange)
}

func (s *server) ImportResourceState(
	ctx context.Context, req *tfprotov6.ImportResourceStateRequest,
) (*tfprotov6.ImportResourceStateResponse, error) {
	return callThenRelease(ctx, s, req, s.ProviderServerWithActions.ImportResourceState)
}

func (s *server) ValidateDataResourceConfig(
	ctx context.Context, req *tfprotov6.ValidateDataResourceConfigRequest,
) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return callThenRelease(ctx, s, req, s.ProviderServerWithActions.ValidateDataResourceConfig)
}

func (s *server) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	return callThenRelease(ctx, s, req, s.ProviderServerWithActions.ReadDataSource)
}

func (s *server) PlanAction(ctx context.Context, req *tfprotov6.PlanActionRequest) (*tfprotov6.PlanActionResponse, error) {
	return callThenRelease(ctx, s, req, s.ProviderServerWithActions.PlanAction)
}

// ValidateActionConfig drops an error of the framework (as of 1.19), which takes every CLI
// for one without write-only arguments in actions. All that have actions have them.
func (s *server) ValidateActionConfig(
	ctx context.Context, req *tfprotov6.ValidateActionConfigRequest,
) (*tfprotov6.ValidateActionConfigResponse, error) {
	resp, err := callThenRelease(ctx, s, req, s.ProviderServerWithActions.ValidateActionConfig)
	if err == nil {
		resp.Diagnostics = slices.DeleteFunc(resp.Diagnostics, func(d *tfprotov6.Diagnostic) bool {
			return d.Summary == "WriteOnly Attribute Not Allowed"
		})
	}
	return resp, err
}

// CallFunction takes an argument without data for null: OpenTofu (as of 1.12) sends null so, and
// the framework (as of 1.19) refuses it.
func (s *server) CallFunction(ctx context.Context, req *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	arguments := slices.Clone(req.Arguments)
	for i, argument := range arguments {
		if argument == nil || len(argument.MsgPack)+len(argument.JSON) == 0 {
			arguments[i] = &tfprotov6.DynamicValue{MsgPack: []byte{0xc0}} // nil in MessagePack
		}
	}
	req = &tfprotov6.CallFunctionRequest{Name: req.Name, Arguments: arguments}
	return callThenRelease(ctx, s, req, s.ProviderServerWithActions.CallFunction)
}

// InvokeAction starts nothing after a stop, and makes StopProvider wait until the
// action's events are sent.
func (s *server) InvokeAction(ctx context.Context, req *tfprotov6.InvokeActionRequest) (*tfprotov6.InvokeActionServerStream, error) {
	s.invoking.RLock() // at once: a stop before the events are pulled must wait, too
	ctx, cancel := s.stoppable(ctx)
	ctx, release := s.releasable(ctx)
	end := func() { cancel(); release(); s.invoking.RUnlock() }
	stream, err := s.ProviderServerWithActions.InvokeAction(ctx, req)
	if err != nil {
		end()
		return nil, err
	}
	events := stream.Events
	stream.Events = func(push func(tfprotov6.InvokeActionEvent) bool) {
		defer end()
		events(push)
	}
	return stream, nil
}

// StopProvider cancels all calls and returns when the actions in progress have
// reported their outcome, which an action does within five seconds. Until then
// Terraform stops no other provider. Once it has returned,
// terraform-plugin-go (as of 0.31) drops the rest of an action's events, including
// its error, and Terraform takes the action for successful.
func (s *server) StopProvider(ctx context.Context, req *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	s.stop()
	resp, err := s.ProviderServerWithActions.StopProvider(ctx, req)
	s.invoking.Lock()
	defer s.invoking.Unlock()
	return resp, err
}
