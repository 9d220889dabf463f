// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package crashpoint

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a command of the CLI under way.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  lockedBuffer
	done chan struct{}
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

// start starts a command in its own process group, as a shell does.
func (w *world) start(args ...string) *process {
	w.t.Helper()
	p := &process{t: w.t, done: make(chan struct{})}
	p.cmd = cli.Command(w.t.Context(), cliConfig, args...)
	p.cmd.Dir = w.dir
	p.cmd.Env = append(p.cmd.Env, w.env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = 10 * time.Millisecond // a killed CLI leaves the plugin holding the pipe
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { p.signal(syscall.SIGKILL) })
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	return p
}

// signal reaches the CLI and the plugin, as Ctrl-C does.
func (p *process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

// printed waits until the CLI has printed one of the texts, or has ended.
func (p *process) printed(texts ...string) {
	p.t.Helper()
	found := func(text string) bool { return strings.Contains(p.out.String(), text) }
	for deadline := time.Now().Add(patience); !slices.ContainsFunc(texts, found); {
		select {
		case <-p.done:
			return
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("not printed: %q\n%s", texts, p.out.String())
		}
	}
}

// wait waits for the end and returns what was printed. The key must not be in it.
func (p *process) wait() (output string, exitCode int) {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("did not end:\n%s", p.out.String())
	}
	output = p.out.String()
	if strings.Contains(output, canaryKey) {
		p.t.Error("the key is in the output")
	}
	return output, p.cmd.ProcessState.ExitCode()
}
