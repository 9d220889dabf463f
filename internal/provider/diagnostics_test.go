// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// A hint names the likeliest cause, and no other first.
func TestHint(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		failure agentapi.Error
		want    string
	}{
		"no connection": {agentapi.Error{Class: agentapi.NotSent, Err: errors.New("no such host")},
			"Check base_url and the network between this machine and the service, HTTPS_PROXY and NO_PROXY too."},
		"answer lost": {agentapi.Error{Class: agentapi.UnknownOutcome, Err: io.EOF}, ""},
		"proxy": {agentapi.Error{Class: agentapi.NotSent, Err: agentapi.ErrProxy},
			"Check HTTPS_PROXY and NO_PROXY in the environment of this run, and whether the proxy may and can reach base_url."},
		"plain HTTP": {agentapi.Error{Class: agentapi.NotSent, Err: agentapi.ErrNoTLS},
			"Check base_url: it starts with https://, and what answers at its host and port is something else."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, hint(&tc.failure)); diff != "" {
				t.Errorf("hint (-want +got):\n%s", diff)
			}
		})
	}
}
