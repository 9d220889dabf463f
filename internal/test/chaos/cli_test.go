// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

// Package chaos interrupts and kills a real CLI with the real provider, at
// every moment, and counts what reached the service. It also shows what ordinary
// use of the provider never notices of the journal.
package chaos

import (
	"bytes"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	// The plugin is built from it; without this Go would take the results of a run before a change of it.
	_ "github.com/agentjobs/terraform-provider-agent/internal/plugin"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

const (
	canaryKey    = "mint_canary-51e0c7-do-not-print"
	canaryPrompt = "canary-prompt-77ac"
	project      = "proj_1"
	// patience ends what hangs, however slow the machine is.
	patience = 5 * time.Minute
)

var (
	cli    tfcli.CLI
	plugin tfcli.Plugin
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "chaos")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := testContext()
	defer cancel()
	if cli, err = tfcli.Find(ctx, os.Stderr); err == nil {
		plugin, err = tfcli.InstallPlugin(ctx, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("CLI:", cli)
	// Most of the time they wait. The command line overrides this.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// world is a root module, its data folder, and a service.
type world struct {
	t   *testing.T
	sim *simulator.Server
	url string
	dir string
	env []string

	journal string   // AGENT_JOURNAL_URL; empty: the default folder
	remote  *backend // nil: the state is a file

	running atomic.Pointer[process] // the command started last
}

func newWorld(t *testing.T, script simulator.Script, config string) *world {
	t.Helper()
	return newWorldOf(t, simulator.New(simulator.Options{
		Key:    canaryKey,
		Script: func(string, int) simulator.Script { return script },
	}), config)
}

func newWorldOf(t *testing.T, sim *simulator.Server, config string) *world {
	t.Helper()
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	w := &world{t: t, sim: sim, url: server.URL, dir: t.TempDir()}
	w.write(config)
	return w
}

// write puts the configuration in place.
func (w *world) write(resources string) {
	w.t.Helper()
	config := `
terraform {
  required_providers {
    agent = { source = "agentjobs/agent" }
  }
` + w.remote.config() + `
}
provider "agent" {
  poll = { min_interval = "50ms", max_interval = "200ms" }
}
` + resources
	if err := os.WriteFile(filepath.Join(w.dir, "main.tf"), []byte(config), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// process is a command of the CLI under way.
type process struct {
	*world
	cmd  *exec.Cmd
	out  lockedBuffer
	done chan struct{}

	sentBefore int // the POSTs that the service had read before
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// start starts a command in a process group of its own, as a shell does.
func (w *world) start(args ...string) *process {
	w.t.Helper()
	p := &process{world: w, done: make(chan struct{}), sentBefore: w.sent()}
	config := plugin.OverrideConfig
	if args[0] == "init" {
		config = plugin.MirrorConfig
	}
	p.cmd = cli.Command(w.t.Context(), config, args...)
	p.cmd.Dir = w.dir
	p.cmd.Env = append(p.cmd.Env, "AGENT_BASE_URL="+w.url, "AGENT_ADMIN_KEY="+canaryKey, "AGENT_PROJECT_ID="+project, "AGENT_JOURNAL_URL="+w.journal)
	p.cmd.Env = append(p.cmd.Env, w.env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = 2 * time.Second // a killed CLI may leave the plugin holding the pipe
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.running.Store(p)
	w.t.Cleanup(func() { p.signalGroup(syscall.SIGKILL) })
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	return p
}

func (p *process) signal(s syscall.Signal)      { _ = p.cmd.Process.Signal(s) }
func (p *process) signalGroup(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

// wait waits for the end and returns what was printed. Neither that nor what the
// command left behind may hold the key.
func (p *process) wait() string {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.signalGroup(syscall.SIGKILL)
		p.t.Fatalf("did not end:\n%s", p.out.String())
	}
	if strings.Contains(p.out.String(), canaryKey) {
		p.t.Error("the key is in the output")
	}
	p.assertNoSecrets()
	return p.out.String()
}

// ended reports whether the command has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) ok() bool { return p.cmd.ProcessState != nil && p.cmd.ProcessState.Success() }

// startApply starts an apply.
func (w *world) startApply(more ...string) *process {
	w.t.Helper()
	return w.start(append([]string{"apply", "-auto-approve", "-no-color", "-input=false"}, more...)...)
}

// apply runs a whole apply.
func (w *world) apply() (output string, ok bool) {
	w.t.Helper()
	p := w.startApply()
	output = p.wait()
	return output, p.ok()
}

// applied runs an apply that must succeed.
func (w *world) applied() string {
	w.t.Helper()
	output, ok := w.apply()
	if !ok {
		w.t.Fatalf("apply failed:\n%s", output)
	}
	return output
}

// until waits for something to come true.
func (w *world) until(what string, true func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !true(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("never happened: %s", what)
		}
	}
}
