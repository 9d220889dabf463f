// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"testing"
	"time"
)

// TestDemo is `make demo` with a shorter first job.
func TestDemo(t *testing.T) {
	t.Parallel()
	if !canInterrupt {
		t.Skip("nobody can press Ctrl-C here")
	}
	start(t, 0) // skips without a CLI
	if err := run(t.Context(), t.Output(), false, root+"/examples/demo/main.tf", time.Second); err != nil {
		t.Error(err)
	}
}
