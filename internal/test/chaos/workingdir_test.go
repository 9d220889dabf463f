// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

const (
	canaryKey    = "mint_canary-51e0c7-do-not-print"
	canaryPrompt = "canary-prompt-77ac"
	project      = "proj_1"
	// patience ends what hangs, however slow the machine is.
	patience = 5 * time.Minute
)

// quick is a job that finishes soon.
var quick = simulator.Script{Duration: 300 * time.Millisecond}

// workingDir is a working directory of the CLI with a root module, and the
// service that its jobs run at.
type workingDir struct {
	t       *testing.T
	sim     *simulator.Server
	url     string
	dir     string
	secrets []string       // that no command may show or store
	env     []string       // of every command
	args    string         // of every plan, apply and destroy
	journal string         // AGENT_JOURNAL_URL; empty: the default folder
	bucket  *fakes3.Server // nil: the journal is in a folder
}

// newWorkingDir starts a service whose jobs all go as script says.
func newWorkingDir(t *testing.T, script simulator.Script, config string) *workingDir {
	t.Helper()
	needsCLI(t)
	if _, err := os.Stat("../../../main.go"); err != nil { // else Go takes results of an earlier main from its cache
		t.Fatal(err)
	}
	sim := simulator.New(simulator.Options{
		Key:    canaryKey,
		Script: func(string, int) simulator.Script { return script },
	})
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	w := &workingDir{t: t, sim: sim, url: server.URL, dir: t.TempDir(), secrets: []string{canaryKey}}
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
	return output, p.ok()
}

// run runs a command that must succeed.
func (w *workingDir) run(command string) (output string) {
	w.t.Helper()
	output, ok := w.try(command)
	if !ok {
		w.t.Fatalf("%s failed:\n%s", command, output[max(0, len(output)-3000):])
	}
	return output
}

// runQuietly runs a command that must succeed and say nothing of the journal.
func (w *workingDir) runQuietly(command string) {
	w.t.Helper()
	output := w.run(command)
	for _, surprise := range []string{"adopt", "earlier run", "ournal"} {
		if strings.Contains(output, surprise) {
			w.t.Errorf("%s says %q:\n%s", command, surprise, output)
		}
	}
}

// until waits for something to happen.
func (w *workingDir) until(what string, happened func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("never happened: %s", what)
		}
	}
}

// use is a configuration of agent_job.NAME with more arguments. The job's name is NAME, or NAME-INDEX with a count.
func use(name, prompt string, arguments ...string) string {
	job := name
	if slices.ContainsFunc(arguments, func(argument string) bool { return strings.HasPrefix(argument, "count = ") }) {
		job += "-${count.index}"
	}
	more := strings.Join(arguments, "\n  ")
	return fmt.Sprintf("resource \"agent_job\" %q {\n  name   = \"%s\"\n  prompt = %q\n  %s\n}\n", name, job, prompt, more)
}
