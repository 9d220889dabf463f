// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package demo

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// group is a command whose child says "ready", and both of which say when they
// are interrupted, as a CLI and its plugin do.
const group = `
trap 'echo parent' INT
sh -c 'trap "echo child; exit" INT; echo ready; while :; do sleep 0.05; done'
exit 3`

func TestRunGroupInterruptsAll(t *testing.T) {
	tests := map[string]struct {
		byContext bool // else by what goes alongside
		exit      int
		err       error
	}{
		"Ctrl-C in the demo":  {exit: 3},
		"Ctrl-C for the demo": {byContext: true, err: context.Canceled},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cmd := exec.CommandContext(ctx, "sh", "-c", group)
			read, write := io.Pipe()
			var shown bytes.Buffer
			cmd.Stdout = io.MultiWriter(&shown, write)
			ready := make(chan struct{})
			go func() {
				lines := bufio.NewScanner(read)
				for lines.Scan() {
					if lines.Text() == "ready" {
						close(ready)
					}
				}
			}()
			exit, err := runGroup(ctx, cmd, func(context.Context) error {
				<-ready
				if test.byContext {
					cancel()
					return nil
				}
				return interruptGroup(cmd)
			})
			if exit != test.exit || !errors.Is(err, test.err) {
				t.Errorf("exit code %d, error %v, want %d, %v", exit, err, test.exit, test.err)
			}
			for _, want := range []string{"child\n", "parent\n"} {
				if !strings.Contains(shown.String(), want) {
					t.Errorf("no %q in %q", want, shown.String())
				}
			}
		})
	}
}

func TestRunGroupResults(t *testing.T) {
	broken := errors.New("broken")
	returns := func(err error) func(context.Context) error {
		return func(context.Context) error { return err }
	}
	untilTheEnd := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	tests := map[string]struct {
		script    string
		alongside func(context.Context) error
		exit      int
		err       error
	}{
		"success":                          {script: "exit 0", alongside: returns(nil)},
		"exit code":                        {script: "exit 2", alongside: returns(nil), exit: 2},
		"what goes alongside is cut short": {script: "exit 0", alongside: untilTheEnd},
		"what goes alongside fails":        {script: "exit 0", alongside: returns(broken), err: broken},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "sh", "-c", test.script)
			exit, err := runGroup(t.Context(), cmd, test.alongside)
			if exit != test.exit || !errors.Is(err, test.err) {
				t.Errorf("exit code %d, error %v, want %d, %v", exit, err, test.exit, test.err)
			}
		})
	}
}
