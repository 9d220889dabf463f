// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

const (
	canaryKey     = "mint_canary-51e0c7-do-not-print"
	canaryPrompt  = "canary-prompt-77ac"
	project       = "proj_1"
	journalFolder = ".agent-journal"
)

// workingDir is a working directory of the CLI with a root module, and the
// service that its jobs run at.
type workingDir struct {
	t       *testing.T
	sim     *simulator.Server
	url     string
	dir     string
	secrets []string // that no command may show or store
	env     []string // of every command
	args    string   // of every plan, apply and destroy
	outputs []string // of the commands so far
}

// newWorkingDir starts a service whose jobs finish soon.
func newWorkingDir(t *testing.T, config string) *workingDir {
	t.Helper()
	if cli.Path == "" {
		t.Skip(tfcli.NoCLI)
	}
	if _, err := os.Stat("../../../main.go"); err != nil { // else Go takes results of an earlier main from its cache
		t.Fatal(err)
	}
	sim := simulator.New(simulator.Options{
		Key:    canaryKey,
		Script: func(string, int) simulator.Script { return simulator.Script{Duration: 300 * time.Millisecond} },
	})
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	w := &workingDir{t: t, sim: sim, url: server.URL, dir: t.TempDir(), secrets: []string{canaryKey}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what happened:\n%s", strings.Join(w.outputs, "\n--- "))
		}
	})
	w.write(config)
	return w
}

const rootModule = `
terraform {
  required_providers {
    agent = { source = "agentjobs/agent" }
  }
}
provider "agent" {
  poll {
    min_interval = "50ms"
    max_interval = "200ms"
  }
}
`

// use is a configuration of agent_job.NAME with more arguments. The job's name is NAME, or NAME-INDEX with a count.
func use(name, prompt string, arguments ...string) string {
	job := name
	if slices.ContainsFunc(arguments, func(argument string) bool { return strings.HasPrefix(argument, "count = ") }) {
		job += "-${count.index}"
	}
	more := strings.Join(arguments, "\n  ")
	return fmt.Sprintf("resource \"agent_job\" %q {\n  name   = \"%s\"\n  prompt = %q\n  %s\n}\n", name, job, prompt, more)
}

// write puts the configuration in place.
func (w *workingDir) write(resources string) {
	w.t.Helper()
	w.writeFile("main.tf", rootModule+resources)
}

func (w *workingDir) writeFile(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// try runs a command.
func (w *workingDir) try(command string) (output string, ok bool) {
	w.t.Helper()
	p := w.start(command)
	output = p.wait()
	return output, p.cmd.ProcessState.Success()
}

// run runs a command that must succeed.
func (w *workingDir) run(command string) (output string) {
	w.t.Helper()
	output, ok := w.try(command)
	if !ok {
		w.t.Fatalf("%s failed", command)
	}
	return output
}

// stateText is the state as it is stored; empty: there is none.
func (w *workingDir) stateText() []byte {
	text, _ := os.ReadFile(filepath.Join(w.dir, "terraform.tfstate"))
	return text
}

// instance is a job in the state.
type instance struct {
	ID, Status string
	Tainted    bool
}

func (w *workingDir) state() (all []instance) {
	w.t.Helper()
	var file struct {
		Resources []struct {
			Instances []struct {
				Status     string
				Attributes struct{ ID, Status string }
			}
		}
	}
	if text := w.stateText(); len(text) > 0 {
		if err := json.Unmarshal(text, &file); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, r := range file.Resources {
		for _, i := range r.Instances {
			all = append(all, instance{i.Attributes.ID, i.Attributes.Status, i.Status == "tainted"})
		}
	}
	return all
}
