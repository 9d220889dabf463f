// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package plugin

import (
	"os"
	"testing"
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
