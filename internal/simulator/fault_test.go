// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// Which requests a queue of faults is used for, and which of them take effect.
func TestFaultQueue(t *testing.T) {
	s := newServer(simulator.Script{})
	id := s.Create("proj", "1").ID
	s.Inject(
		simulator.Fault{Kind: simulator.KindMessage, Skip: 1, Status: 500},
		simulator.Fault{Kind: simulator.KindMessage, Status: 501, AfterEffect: true},
		simulator.Fault{Skip: 1, Status: 502, Times: 2},
		simulator.Fault{Skip: 1, Status: 503},
		simulator.Fault{Kind: simulator.KindGet, Status: 504, Times: -1, Body: `{"error":"lost"}`},
	)
	var got []int
	for range 7 {
		got = append(got, get(t, s, id).status)
	}
	for _, prompt := range []string{"2", "refused", "3", "4"} {
		got = append(got, message(t, s, id, prompt).status)
	}
	if diff := cmp.Diff([]int{200, 502, 502, 200, 503, 504, 504, 200, 500, 501, 200}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	if text := get(t, s, id).fields["error"]; text != "lost" {
		t.Errorf("the fault's body: %v", text)
	}
	if diff := cmp.Diff([]string{"1", "2", "3", "4"}, s.Jobs()[0].Prompts); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
}
