// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const (
	module = "modules/agent-job"
	first  = "Add a quickstart for the Python SDK"
)

// startModule is start with a copy of the module as the root module, because init writes into it.
func startModule(t *testing.T, endings ...string) *trial {
	t.Helper()
	s := start(t, 0)
	s.config = withInit
	for _, file := range filesIn(t, filepath.Join(root, "examples", module), endings...) {
		s.write(file, read(t, path.Join(module, file)))
	}
	return s
}

// The module's tests on the CLI that is there.
func TestAccModuleTests(t *testing.T) {
	t.Parallel()
	for folder, want := range map[string][][]string{ // the prompts of the jobs: OpenTofu's asserts cannot compare two runs
		"tests": nil,
		"tests/integration": {
			{first + " [simulate: 1s, failed]"}, {first + " [simulate: 1s]"}, {first + " [simulate: 1s]", "Show the async client too [simulate: 1s]"},
		},
	} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			s := startModule(t, ".tf", "test.hcl")
			if want == nil {
				s.env = nil // a mock needs none
			}
			s.call("init")
			if shown := s.call("test", "-test-directory="+folder); strings.Contains(shown, "Success! 0 passed") {
				t.Errorf("no tests:\n%s", shown)
			}
			s.expect(want...)
		})
	}
}

// The module's example.
func TestAccModule(t *testing.T) {
	t.Parallel()
	s := startModule(t, ".tf")
	s.dir = filepath.Join(s.dir, "examples", "complete")
	s.call("init")
	s.apply()
	s.expect([]string{first})
}
