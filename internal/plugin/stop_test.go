// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package plugin

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// The CLI stops the provider once, and a call that it has just begun may arrive after that:
// it is cancelled from its start.
func TestStopProvider_callAfterIt(t *testing.T) {
	s := newServer(t.Context(), nil)
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
	synctest.Test(t, func(t *testing.T) { // it fails if nobody cancels the call
		f := new(lateFramework)
		f.server = newServer(t.Context(), f)
		if _, err := f.server.ApplyResourceChange(t.Context(), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("the call ends with %v", err)
		}
	})
}

// lateFramework is stopped before it has noted a call.
type lateFramework struct {
	frameworkServer
	server *server
}

func (f *lateFramework) ApplyResourceChange(ctx context.Context, _ *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	_, err := f.server.StopProvider(ctx, nil)
	<-ctx.Done()
	return nil, errors.Join(err, ctx.Err())
}

func (*lateFramework) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return nil, nil
}

func (*lateFramework) InvokeAction(context.Context, *tfprotov6.InvokeActionRequest) (*tfprotov6.InvokeActionServerStream, error) {
	return &tfprotov6.InvokeActionServerStream{Events: func(func(tfprotov6.InvokeActionEvent) bool) {}}, nil
}

// StopProvider waits for an action from its call on, not only once its events are read.
func TestStopProvider_actionJustBegun(t *testing.T) {
	s := newServer(t.Context(), new(lateFramework))
	stream, err := s.InvokeAction(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() {
		_, err := s.StopProvider(t.Context(), nil)
		stopped <- err
	}()
	select {
	case <-stopped:
		t.Fatal("StopProvider returns before the events of the action were sent")
	case <-time.After(100 * time.Millisecond):
	}
	for range stream.Events {
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
