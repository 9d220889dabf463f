// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import "testing"

// TestDemo is `make demo`, half a minute; by its name it is no part of the test matrix.
func TestDemo(t *testing.T) {
	t.Parallel()
	if !canInterrupt {
		t.Skip("nobody can press Ctrl-C here")
	}
	newTrials(t) // skips without a CLI, and chooses it
	if err := run(t.Context(), t.Output(), false, "../../../examples/demo/main.tf"); err != nil {
		t.Error(err)
	}
}
