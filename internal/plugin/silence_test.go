// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package plugin

import (
	"maps"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/provider"
)

// What nobody reads is not written, and what somebody asks for is.
func TestLogLevels(t *testing.T) {
	silenced := map[string]string{"TF_LOG_SDK": "off", "TF_LOG_PROVIDER_AGENT": "off"}
	for _, test := range []struct {
		given map[string]string
		added map[string]string
		logs  bool // is one asked for
	}{
		{given: nil, added: silenced},
		{given: map[string]string{"TF_LOG": "OFF"}, added: silenced},
		{given: map[string]string{"TF_LOG_CORE": "trace"}, added: silenced},
		{given: map[string]string{"TF_LOG": "debug"}, logs: true},
		{given: map[string]string{"TF_LOG_PROVIDER_AGENT": "info"}, logs: true},
		{given: map[string]string{"TF_LOG": "off", "TF_LOG_PROVIDER": "info"}, logs: true},
		{given: map[string]string{"TF_LOG_SDK_PROTO": "trace"}},
	} {
		variables := []string{"TF_LOG", "TF_LOG_CORE", "TF_LOG_PROVIDER", "TF_LOG_PROVIDER_AGENT", "TF_LOG_SDK", "TF_LOG_SDK_PROTO"}
		for _, name := range variables {
			t.Setenv(name, test.given[name]) // restores it in the end
			if test.given[name] == "" {
				if err := os.Unsetenv(name); err != nil {
					t.Fatal(err)
				}
			}
		}
		if logs := provider.LogRequested(); logs != test.logs {
			t.Errorf("%v: a log is asked for: %t", test.given, logs)
		}
		if err := silenceUnreadLog(); err != nil {
			t.Fatal(err)
		}
		want, got := map[string]string{}, map[string]string{}
		maps.Copy(want, test.given)
		maps.Copy(want, test.added)
		for _, name := range variables {
			if text, ok := os.LookupEnv(name); ok {
				got[name] = text
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.given, diff)
		}
	}
}
