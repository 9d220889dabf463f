// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// process is a command of the CLI under way.
type process struct {
	*workingDir
	cmd  *exec.Cmd
	file string // of its output
	done chan struct{}

	// Before it started:
	sentBefore, readBefore int // the POSTs and GETs that the service had read
	jobsBefore             int // in the state, which a run reads once
}

// start starts a command in its own process group, as a shell does. It prints
// to a file, which nobody has to keep reading after the CLI is killed.
func (w *workingDir) start(command string) *process {
	w.t.Helper()
	p := &process{workingDir: w, done: make(chan struct{}), file: filepath.Join(w.t.TempDir(), "output")}
	p.sentBefore, p.readBefore, p.jobsBefore = w.sent(), w.sim.Counts().Get, len(w.state())
	out, err := os.Create(p.file)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	p.cmd = cli.Command(w.t.Context(), provider.OverrideConfig, strings.Fields(command)...)
	p.cmd.Dir = w.dir
	plan := "-no-color -input=false " + w.args
	apply := "-auto-approve " + plan
	p.cmd.Env = slices.Concat(p.cmd.Env, []string{
		"AGENT_BASE_URL=" + w.url, "AGENT_ADMIN_KEY=" + canaryKey, "AGENT_PROJECT_ID=" + project, "AGENT_JOURNAL_URL=" + w.journal,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"TF_CLI_ARGS_plan=" + plan, "TF_CLI_ARGS_apply=" + apply, "TF_CLI_ARGS_destroy=" + apply,
	}, w.env)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { p.signalGroup(syscall.SIGKILL) })
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	return p
}

// signal reaches the CLI alone, signalGroup the plugin too, as Ctrl-C does.
func (p *process) signal(s syscall.Signal)      { _ = p.cmd.Process.Signal(s) }
func (p *process) signalGroup(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

// awaitPOSTs waits until the service has read n POSTs of the command, and
// awaitPolls until three jobs are polled, each for the first time.
func (p *process) awaitPOSTs(n int) {
	p.t.Helper()
	p.awaits("the POSTs are read", func() bool { return p.sent() >= p.sentBefore+n })
}

func (p *process) awaitPolls() {
	p.t.Helper()
	p.awaitPOSTs(3)
	p.awaits("all are polled", func() bool { return p.sim.Counts().Get == p.readBefore+p.jobsBefore+3 })
}

// awaits waits for something that happens before the command ends.
func (p *process) awaits(what string, happened func() bool) {
	p.t.Helper()
	p.until(what, func() bool {
		ended := false
		select {
		case <-p.done:
			ended = true
		default:
		}
		has := happened()
		if ended && !has {
			p.t.Fatalf("it has ended before %s:\n%s", what, p.output())
		}
		return has
	})
}

// output is what was printed until now.
func (p *process) output() string {
	text, _ := os.ReadFile(p.file)
	return string(text)
}

// wait waits for the end and returns what was printed. Neither that nor what the
// command left behind may hold a secret.
func (p *process) wait() string {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.signalGroup(syscall.SIGKILL)
		p.t.Fatalf("did not end:\n%s", p.output())
	}
	output := p.output()
	p.assertNoSecrets(output)
	return output
}

func (p *process) ok() bool { return p.cmd.ProcessState.Success() }
