// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"os"
	"os/exec"
	"path/filepath"
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
func (w *workingDir) start(command string, more ...string) *process {
	w.t.Helper()
	p := &process{workingDir: w, done: make(chan struct{}), file: filepath.Join(w.t.TempDir(), "output")}
	p.sentBefore, p.readBefore, p.jobsBefore = w.sent(), w.sim.Counts().Get, len(w.state())
	out, err := os.Create(p.file)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	p.cmd = cli.Command(w.t.Context(), w.config, arguments(command, more)...)
	p.cmd.Dir = w.dir
	p.cmd.Env = append(p.cmd.Env, "AGENT_BASE_URL="+w.url, "AGENT_ADMIN_KEY="+canaryKey, "AGENT_PROJECT_ID="+project, "AGENT_JOURNAL_URL="+w.journal)
	p.cmd.Env = append(p.cmd.Env, w.env...)
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

// signalTwice sends SIGINT, and again after a while.
func (p *process) signalTwice(send func(*process, syscall.Signal), gap time.Duration) {
	send(p, syscall.SIGINT)
	select {
	case <-p.done:
	case <-time.After(gap):
		send(p, syscall.SIGINT)
	}
}

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
func (p *process) awaits(what string, true func() bool) {
	p.t.Helper()
	p.until(what, func() bool {
		ended, is := p.ended(), true()
		if ended && !is {
			p.t.Fatalf("it has ended before %s:\n%s", what, p.output())
		}
		return is
	})
}

// output is what was printed until now.
func (p *process) output() string {
	text, _ := os.ReadFile(p.file)
	return string(text)
}

// wait waits for the end and returns what was printed. Neither that nor what the
// command left behind may hold the key.
func (p *process) wait() string {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.signalGroup(syscall.SIGKILL)
		p.t.Fatalf("did not end:\n%s", p.output())
	}
	if strings.Contains(p.output(), canaryKey) {
		p.t.Error("the key is in the output")
	}
	p.assertNoSecrets()
	return p.output()
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
