// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import "testing"

// Exchanges are logged when somebody reads them.
func TestExchangeLogger(t *testing.T) {
	for level, want := range map[string]bool{"off": false, "debug": true} {
		t.Setenv("TF_LOG", level)
		if logs := exchangeLogger() != nil; logs != want {
			t.Errorf("TF_LOG=%s: exchanges are logged: %t", level, logs)
		}
	}
}
