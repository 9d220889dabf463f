// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const migrating = "guides/migrating/import.tf"

// The generated configuration lacks the prompt: nobody but the user knows it.
func TestAccGenerateConfig(t *testing.T) {
	t.Parallel()
	s := start(t, 0)
	id := s.service.Create("proj_123", "from elsewhere").ID
	s.write("import.tf", strings.ReplaceAll(read(t, migrating), "job_456", id))
	shown, ok := s.try("plan", "-generate-config-out=generated.tf")
	if ok || !strings.Contains(shown, "Exactly one of these attributes must be configured: [prompt,prompt_wo]") {
		t.Errorf("%t\n%s", ok, shown)
	}
	generated, err := os.ReadFile(filepath.Join(s.dir, "generated.tf"))
	if err != nil || !strings.Contains(string(generated), "prompt     = null") {
		t.Fatalf("%v\n%s", err, generated)
	}
	s.write("generated.tf", strings.ReplaceAll(string(generated), "prompt     = null", `prompt = "Add a quickstart for the Python SDK"`))
	s.apply()
	s.expect([]string{"from elsewhere"})
}
