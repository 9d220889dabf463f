// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// A repository can bring a journal: links, and records of jobs that its author has started. After a clone, a plan and an apply, all other
// files of the runner are as they were, and no job is adopted. Red without: the checks of store/folder.
func TestX21_hostile_checkout(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	for name, test := range map[string]struct {
		bring func(w *workingDir, runner string) error
		says  string // of an apply that sends nothing
	}{
		"ignore file": {bring: func(w *workingDir, runner string) error {
			journal := filepath.Join(w.dir, ".agent-journal")
			return errors.Join(os.Mkdir(journal, 0o700), os.Symlink(filepath.Join(runner, "file"), filepath.Join(journal, ".gitignore")))
		}},
		"folder": {func(w *workingDir, runner string) error {
			return os.Symlink(runner, filepath.Join(w.dir, ".agent-journal"))
		}, "no folder"},
		"records": {func(w *workingDir, _ string) error {
			w.run("apply")
			return os.Remove(filepath.Join(w.dir, stateFile))
		}, "not read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, runner := newWorkingDir(t, quick, use("test", "write")), t.TempDir()
			file := filepath.Join(runner, "file")
			if err := errors.Join(os.WriteFile(file, []byte("precious"), 0o600), test.bring(w, runner)); err != nil {
				t.Fatal(err)
			}
			before, sent, clone := w.files(runner), w.sent(), filepath.Join(t.TempDir(), "clone")
			for _, arguments := range []string{"init -q", "add -f .", "-c user.name=a -c user.email=a@example.com commit -q -m a", "clone -q . " + clone} {
				command := exec.CommandContext(t.Context(), git, strings.Fields(arguments)...)
				command.Dir, command.Env = w.dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
				if text, err := command.CombinedOutput(); err != nil {
					t.Fatalf("git %s: %v\n%s", arguments, err, text)
				}
			}
			w.dir = clone
			w.try("plan")
			began := time.Now()
			text, ok := w.try("apply")
			switch {
			case ok != (test.says == ""):
				t.Errorf("applied: %t\n%s", ok, text)
			case ok:
				w.posts(sent+1, 0)
			default:
				w.posts(sent, 0)
				harness.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(text, "│", "")), " "), "was not sent", test.says, "a checkout or a copy")
			}
			if jobs := w.state(); (len(jobs) > 0) != ok || time.Since(began) > time.Minute {
				t.Errorf("state after %s: %v", time.Since(began), jobs)
			}
			if diff := cmp.Diff(before, w.files(runner)); diff != "" {
				t.Errorf("files of the runner (-before +after):\n%s", diff)
			}
		})
	}
}

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
