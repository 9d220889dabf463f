// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// Two states of one folder, which a flag names, have a job each, and find it again. Red without: At of a backend.
func TestN29_two_states_of_one_folder(t *testing.T) {
	t.Parallel()
	w := newWorkingDir(t, quick, use("test", "write"))
	for _, command := range []string{"apply", "apply -state=a.tfstate", "apply -state=b.tfstate"} {
		w.run(command)
	}
	w.posts(3, 0)
	if err := os.Remove(filepath.Join(w.dir, "b.tfstate")); err != nil {
		t.Fatal(err)
	}
	harness.Contains(t, w.run("apply -state=b.tfstate"), createAdopted)
	w.posts(3, 0)
}

// What a cloud's library starts to get credentials has neither the key nor a variable of the configuration. Red without: TakeEnvironment.
func TestChildrenHaveNoSecrets(t *testing.T) {
	t.Parallel()
	for name, journal := range map[string]string{
		"az":                 "azblob://devstate/ci-state?state=a",
		"credential_process": "s3://bucket?state=a&region=r&profile=p&endpoint=http://127.0.0.1:1",
	} {
		w, bin := newWorkingDir(t, quick, use("test", "write")), t.TempDir()
		child, config := filepath.Join(bin, "az"), filepath.Join(bin, "config")
		err := errors.Join(
			os.WriteFile(child, []byte("#!/bin/sh\nenv >> \"$0.env\"\nexit 1\n"), 0o700),
			os.WriteFile(config, []byte("[profile p]\ncredential_process = "+child+"\n"), 0o600),
		)
		if err != nil {
			t.Fatal(err)
		}
		w.journal = journal
		w.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "ARM_USE_CLI=true", "AWS_CONFIG_FILE=" + config, "TF_VAR_token=canary"}
		if text, ok := w.try("apply"); ok {
			t.Errorf("%s: applied without credentials:\n%s", name, text)
		}
		got, err := os.ReadFile(child + ".env")
		if text := string(got); err != nil || !strings.Contains(text, "PATH=") || strings.Contains(text, "AGENT_") || strings.Contains(text, "TF_VAR_") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}
