// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package send_test

import (
	"context"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// A panic after the service has accepted the request loses neither the entry nor, for the
// rest of the run, the slot: the next run takes the job over.
func TestSend_panic(t *testing.T) {
	sim := simulator.New(simulator.Options{Key: "mint_test"})
	server := httptest.NewServer(sim)
	defer server.Close()
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	location := store.Location{Named: true, Folder: t.TempDir()}
	sends := func(run cli.Run, log func(context.Context, map[string]any)) (out send.Outcome, panicked bool) {
		process := cli.This()
		process.Run = run
		kept, err := journal.Open(process, journal.Options{Location: location, Scope: "scope", RequestTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		client := agentapi.New(agentapi.Config{BaseURL: base, Key: agentapi.NewKey("mint_test"), RequestTimeout: time.Second, MaxPollsPerSecond: 1, Log: log})
		operation := (&send.Sender{Client: client, Journal: kept}).Begin(t.Context(), send.Request{ProjectID: "p", Prompt: "a", Key: store.CreateKey("p", "a", "")})
		defer func() { panicked = recover() != nil }()
		defer operation.End()
		return operation.Send(t.Context()), false
	}
	if _, panicked := sends("first", func(context.Context, map[string]any) { panic("a bug") }); !panicked {
		t.Fatal("no panic")
	}
	out, _ := sends("second", nil)
	if out.Result != send.TakenOver || out.Job == nil || out.Job.ID != sim.Jobs()[0].ID || len(sim.Jobs()) != 1 {
		t.Errorf("result %d of %d jobs: %v", out.Result, len(sim.Jobs()), out.Err)
	}
}
