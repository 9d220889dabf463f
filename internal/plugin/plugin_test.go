// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package plugin

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
)

func TestTakeEnvironment(t *testing.T) {
	for name, isTaken := range map[string]bool{
		"AGENT_ADMIN_KEY": true, "AGENT_": true, "TF_VAR_a": true, "AGENT": false, "XAGENT_KEY": false, "TF_VARX": false, "ARM_CLIENT_SECRET": false,
	} {
		t.Setenv(name, "value=1")
		getenv := TakeEnvironment()
		if _, isLeft := os.LookupEnv(name); isLeft == isTaken || getenv(name) != "value=1" {
			t.Errorf("%s: left %t, %q", name, isLeft, getenv(name))
		}
	}
}

// A process ends once the outcome of its POSTs is recorded, however its CLI ends it, or after the longest time.
func TestEnd_drains(t *testing.T) {
	for _, test := range []struct {
		name    string
		gone    bool
		longest time.Duration
		want    error
	}{
		{"shutdown", false, shutdownDrain, nil},
		{"CLI is gone", true, cliGoneDrain, errCLIGone},
	} {
		for took, want := range map[time.Duration]time.Duration{
			0: 0, test.longest / 2: test.longest / 2, test.longest * 2: test.longest,
		} {
			synctest.Test(t, func(t *testing.T) {
				process := &cli.Process{CLIEnded: func() bool { return test.gone }}
				recorded := process.Hold()
				recorded()
				recorded() // counts once
				time.AfterFunc(took, process.Hold())
				served := make(chan error, 1)
				if !test.gone {
					served <- nil
				}
				began := time.Now()
				err := End(t.Context(), process, served)
				if got := time.Since(began); !errors.Is(err, test.want) || got < want || got > want+parentCheck {
					t.Errorf("%s: with a response after %v, it ends after %v with %v; want %v and %v", test.name, took, got, err, want, test.want)
				}
				time.Sleep(took) // until the response is there
			})
		}
	}
}

// A stop that comes when a call has begun, and before the framework knows the call, cancels it nevertheless. So it does with a call
// that the CLI has just begun, and that arrives after the stop.
func TestStopProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it fails if nobody cancels the call
		f := new(lateFramework)
		f.server = newServer(t.Context(), f)
		if _, err := f.server.ApplyResourceChange(t.Context(), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("the call ends with %v", err)
		}
		for range 100 {
			ctx, cancel := f.server.stoppable(t.Context())
			if ctx.Err() == nil {
				t.Error("a call begins after the stop")
			}
			cancel()
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
