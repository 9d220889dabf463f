// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

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
