// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator_test

import (
	"io"
	"net/http/httptest"
	"testing"
	"testing/iotest"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// A body that breaks off is on record but not counted: the counts tell how often the service could have acted. What a client
// sees of the service: the tests of cmd/simulator and of internal/tools/contract.
func TestIncompleteBody(t *testing.T) {
	s := simulator.New(simulator.Options{})
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v2/agent/proj/job", iotest.ErrReader(io.ErrUnexpectedEOF))
	s.ServeHTTP(httptest.NewRecorder(), r)
	if s.Counts() != (simulator.Counts{}) || len(s.Jobs()) != 0 || len(s.Requests()) != 1 {
		t.Errorf("counts %v, jobs %v, record %+v", s.Counts(), s.Jobs(), s.Requests())
	}
}
