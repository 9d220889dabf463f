// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

const (
	// watching is for how long one sees the wait before Ctrl-C.
	watching = 2 * time.Second
	// grace is how long a CLI that was interrupted may take to end.
	grace = 20 * time.Second
)

// call runs the CLI for a step, with its output shown as it comes, and returns
// that output and the exit code.
func (d *demo) call(ctx context.Context, s step, before simulator.Counts) (output string, exit int, err error) {
	d.command(d.cli.Product, s.args)
	args := s.args
	if !d.color {
		args = append([]string{args[0], "-no-color"}, args[1:]...)
	}
	cmd := d.cli.Command(ctx, d.plugin.MirrorConfig, args...)
	cmd.Dir = d.dir
	cmd.Env = append(cmd.Env, d.service.environment()...)
	var shown bytes.Buffer
	cmd.Stdout = io.MultiWriter(d, &shown)
	cmd.Stderr = cmd.Stdout // the same writer: exec then writes from one goroutine
	pressCtrlC := func(ctx context.Context) error {
		if !s.interrupt {
			return nil
		}
		if err := d.service.awaitWait(ctx, before); err != nil {
			return err
		}
		select {
		case <-time.After(watching):
		case <-ctx.Done():
			return ctx.Err()
		}
		fmt.Fprintln(d, "^C")
		return interruptGroup(cmd)
	}
	exit, err = runGroup(ctx, cmd, pressCtrlC)
	if s.args[0] == "output" {
		fmt.Fprintln(d) // -raw ends without a line break
	}
	return shown.String(), exit, err
}

// runGroup runs a command as a process group, and meanwhile goes along with it
// in alongside, whose context ends with the command. When ctx ends, the group
// is interrupted, and killed if that does not end it.
func runGroup(ctx context.Context, cmd *exec.Cmd, alongside func(context.Context) error) (exit int, err error) {
	leadGroup(cmd)
	cmd.Cancel = func() error { return interruptGroup(cmd) }
	cmd.WaitDelay = grace
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	running, ended := context.WithCancel(ctx)
	defer ended()
	var with sync.WaitGroup
	var failed error
	with.Go(func() { failed = alongside(running) })
	err = cmd.Wait()
	ended()
	with.Wait()

	if ctx.Err() != nil {
		if err := killGroup(cmd); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return 0, errors.Join(ctx.Err(), err)
		}
		return 0, ctx.Err()
	}
	if exited := new(exec.ExitError); errors.As(err, &exited) {
		return exited.ExitCode(), nil
	}
	if err != nil {
		return 0, err
	}
	if failed != nil && !errors.Is(failed, context.Canceled) {
		return 0, failed
	}
	return 0, nil
}
