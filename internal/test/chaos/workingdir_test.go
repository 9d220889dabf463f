// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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

// patience ends what hangs, however slow the machine is.
const patience = 5 * time.Minute

// process is a command of the CLI under way.
type process struct {
	*workingDir
	cmd        *exec.Cmd
	file       string // of its output
	done       chan struct{}
	sentBefore int // the POSTs that the service had read before it started
}

// start starts a command in its own process group, as a shell does. It prints
// to a file, which nobody has to keep reading after the CLI is killed.
func (w *workingDir) start(command string) *process {
	w.t.Helper()
	p := &process{workingDir: w, done: make(chan struct{}), file: filepath.Join(w.t.TempDir(), "output"), sentBefore: w.sent()}
	out, err := os.Create(p.file)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	p.cmd = cli.Command(ctx, provider.OverrideConfig, strings.Fields(command)...)
	p.cmd.Dir = w.dir
	plan := "-no-color -input=false " + w.args
	apply := "-auto-approve " + plan
	p.cmd.Env = slices.Concat(p.cmd.Env, []string{
		"AGENT_BASE_URL=" + w.url, "AGENT_ADMIN_KEY=" + canaryKey, "AGENT_PROJECT_ID=" + project,
		"TF_CLI_ARGS_plan=" + plan, "TF_CLI_ARGS_apply=" + apply, "TF_CLI_ARGS_destroy=" + apply,
	}, w.env)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { p.signal(syscall.SIGKILL, true) })
	go func() {
		defer cancel()
		_ = p.cmd.Wait()
		close(p.done)
	}()
	return p
}

// signal reaches the CLI alone, or the plugin too, as Ctrl-C does.
func (p *process) signal(s syscall.Signal, group bool) {
	pid := p.cmd.Process.Pid
	if group {
		pid = -pid
	}
	_ = syscall.Kill(pid, s)
}

// sent is how many POSTs the service has read.
func (w *workingDir) sent() int { return w.sim.Counts().Create + w.sim.Counts().Message }

// awaitPOSTs waits until the service has read n POSTs of the command.
func (p *process) awaitPOSTs(n int) {
	p.t.Helper()
	p.awaits("the POSTs are read", func() bool { return p.sent() >= p.sentBefore+n })
}

// awaits waits for something that happens before the command ends.
func (p *process) awaits(what string, happened func() bool) {
	p.t.Helper()
	for !happened() {
		select {
		case <-p.done:
			if !happened() {
				p.t.Fatalf("it has ended before %s", what)
			}
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// wait waits for the end and returns what was printed. Neither that nor what the
// command left behind may hold a secret.
func (p *process) wait() string {
	p.t.Helper()
	<-p.done
	text, _ := os.ReadFile(p.file)
	output := string(text)
	p.outputs = append(p.outputs, strings.Join(p.cmd.Args[1:], " ")+":\n"+output)
	p.assertNoSecrets(output)
	return output
}
