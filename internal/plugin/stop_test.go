// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package plugin

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// The CLI stops the provider once, and a call that it has just begun may arrive after that:
// it is cancelled from its start.
func TestStopProvider_callAfterIt(t *testing.T) {
	s := newServer(t.Context(), nil, nil)
	s.stop()
	for range 100 {
		ctx, cancel := s.stoppable(t.Context())
		if ctx.Err() == nil {
			t.Fatal("the call begins")
		}
		cancel()
	}
}

// A stop that comes when a call has begun, and before the framework knows the call,
// cancels it nevertheless.
func TestStopProvider_callJustBegun(t *testing.T) {
	f := &lateFramework{T: t}
	f.server = newServer(t.Context(), f, f)
	if _, err := f.server.ApplyResourceChange(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// lateFramework is stopped before it has noted a call.
type lateFramework struct {
	frameworkServer
	*testing.T
	server *server
}

func (f *lateFramework) ApplyResourceChange(ctx context.Context, _ *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	if _, err := f.server.StopProvider(ctx, nil); err != nil {
		f.Error(err)
	}
	select {
	case <-ctx.Done():
		if ctx.Err() == nil {
			f.Error("the call is cancelled without an error")
		}
	case <-time.After(10 * time.Second):
		f.Error("the call is not cancelled")
	}
	return nil, nil
}

func (*lateFramework) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return nil, nil
}

// StopProvider waits for an action from its call on, not only once its events are read.
func TestStopProvider_actionJustBegun(t *testing.T) {
	f := &lateFramework{T: t}
	f.server = newServer(t.Context(), f, f)
	stream, err := f.server.InvokeAction(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.server.invoking.TryLock() {
		t.Fatal("StopProvider would return before the events of the action were sent")
	}
	for range stream.Events {
	}
	if _, err := f.server.StopProvider(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func (*lateFramework) InvokeAction(context.Context, *tfprotov6.InvokeActionRequest) (*tfprotov6.InvokeActionServerStream, error) {
	return &tfprotov6.InvokeActionServerStream{Events: func(func(tfprotov6.InvokeActionEvent) bool) {}}, nil
}

func (*lateFramework) StateRead(string, []byte) {}
