// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// Which requests a queue of faults is used for: each step is a request and its status.
func TestFaultQueue(t *testing.T) {
	type step struct {
		kind   simulator.Kind
		status int
	}
	post := func(status int) step { return step{simulator.KindCreate, status} }
	send := func(status int) step { return step{simulator.KindMessage, status} }
	read := func(status int) step { return step{simulator.KindGet, status} }
	tests := map[string]struct {
		faults []simulator.Fault
		steps  []step
	}{
		"once":         {[]simulator.Fault{{Status: 500}}, []step{post(500), post(201)}},
		"times":        {[]simulator.Fault{{Status: 500, Times: 2}}, []step{read(500), post(500), read(200)}},
		"for ever":     {[]simulator.Fault{{Status: 500, Times: -1}}, []step{read(500), read(500), read(500), read(500)}},
		"skip in turn": {[]simulator.Fault{{Status: 500, Skip: 2}, {Status: 502, Skip: 1}}, []step{read(200), read(200), read(500), read(200), read(502), read(200)}},
		"by kind":      {[]simulator.Fault{{Kind: simulator.KindMessage, Status: 500}, {Kind: simulator.KindGet, Status: 502}}, []step{read(502), post(201), send(500)}},
		"skip by kind": {[]simulator.Fault{{Kind: simulator.KindCreate, Skip: 1, Status: 500}}, []step{read(200), post(201), read(200), post(500)}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(simulator.Script{})
			id := s.Create("proj", "existing").ID
			s.Inject(tt.faults...)
			for i, step := range tt.steps {
				var got reply
				switch step.kind {
				case simulator.KindCreate:
					got = create(t, s, "new")
				case simulator.KindMessage:
					got = message(t, s, id, "new")
				default:
					got = get(t, s, id)
				}
				if got.status != step.status {
					t.Errorf("step %d: %d, want %d", i, got.status, step.status)
				}
			}
		})
	}
}

func TestFaultResponse(t *testing.T) {
	contentType, retryAfter := []string{"application/json"}, []string{"soon"}
	tests := map[string]struct {
		fault  simulator.Fault
		status int
		header map[string][]string
		jobs   int
	}{
		"nothing":             {simulator.Fault{}, 201, map[string][]string{"Content-Type": contentType}, 1},
		"status":              {simulator.Fault{Status: 503}, 503, map[string][]string{}, 0},
		"body, before effect": {simulator.Fault{Status: 201, Body: `{"id":`}, 201, map[string][]string{"Content-Type": contentType}, 0},
		"retry after":         {simulator.Fault{Status: 429, RetryAfter: "soon"}, 429, map[string][]string{"Retry-After": retryAfter}, 0},
		"after effect":        {simulator.Fault{Status: 500, AfterEffect: true}, 500, map[string][]string{}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(simulator.Script{})
			s.Inject(tt.fault)
			got := create(t, s, "x")
			if got.status != tt.status || s.Requests()[0].Status != tt.status || len(s.Jobs()) != tt.jobs {
				t.Errorf("status %d, want %d; %d jobs, want %d; record %+v", got.status, tt.status, len(s.Jobs()), tt.jobs, s.Requests())
			}
			if diff := cmp.Diff(tt.header, map[string][]string(got.header)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
