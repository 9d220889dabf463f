// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The prompts: the first is the default of examples/demo.
const (
	firstPrompt  = "Add a quickstart for the Python SDK"
	secondPrompt = "Show the async client too"
	thirdPrompt  = "Link the quickstart from the start page"
)

// step is one call of the CLI.
type step struct {
	headline        string
	name            string // in the table
	args            []string
	create, message int    // POSTs that it should send
	get             bool   // whether it should send GETs
	status          string // of the job in the state afterwards; "" if it has none
	interrupt       bool   // press Ctrl-C while it waits; any exit code will do
}

func steps() []step {
	apply := func(vars ...string) []string { return append([]string{"apply", "-auto-approve"}, vars...) }
	return []step{
		{headline: "Install the provider that was just built", name: "init", args: []string{"init"}},
		{headline: "Plan: nothing is sent", name: "plan", args: []string{"plan"}},
		{headline: "Apply: starts a job and waits for it", name: "apply",
			args: apply(), create: 1, get: true, status: "completed"},
		{headline: "The link of the pull request is an output", name: "output",
			args: []string{"output", "-raw", "pull_request"}, status: "completed"},
		{headline: "Plan again: no changes (with -detailed-exitcode, changes would be exit code 2)", name: "plan again",
			args: []string{"plan", "-detailed-exitcode"}, get: true, status: "completed"},
		{headline: "A new prompt: one message to the same job", name: "apply, new prompt",
			args: apply("-var", "prompt="+secondPrompt), message: 1, get: true, status: "completed"},
		{headline: "Another prompt, and Ctrl-C during the wait", name: "apply, new prompt, Ctrl-C",
			args: apply("-var", "prompt="+thirdPrompt), message: 1, get: true, status: "active", interrupt: true},
		{headline: "Apply again: resumes waiting without sending anything", name: "apply again",
			args: apply("-var", "prompt="+thirdPrompt), get: true, status: "completed"},
		{headline: "Destroy: the service cannot delete a job, so Terraform forgets it", name: "destroy",
			args: []string{"destroy", "-auto-approve"}, get: true},
	}
}

// do runs a step and compares what it sent and left with what it should have.
func (d *demo) do(ctx context.Context, s step) error {
	before := d.service.Counts()
	output, err := d.call(ctx, s)
	if err != nil {
		return err
	}
	after := d.service.Counts()
	create, message, get := after.Create-before.Create, after.Message-before.Message, after.Get-before.Get
	id, status, err := d.state()
	if err != nil {
		return err
	}
	if s.create > 0 {
		d.jobID = id
	}
	if id != d.jobID && s.status != "" {
		status += ", another job"
	}
	ok := create == s.create && message == s.message && (get > 0) == s.get && after.Other == 0 && status == s.status
	gets := map[bool]string{true: "1 or more", false: "0"}[s.get]
	d.rows = append(d.rows, fmt.Sprintf("%s\t%d / %d\t%d / %d\t%d / %s\t%s / %s\t%s", s.name, create, s.create,
		message, s.message, get, gets, cmp.Or(status, "none"), cmp.Or(s.status, "none"), d.verdict(ok)))
	if s.args[0] == "output" {
		job, _ := d.service.Job(d.jobID)
		d.check(job.PullRequest != "" && strings.TrimSpace(output) == job.PullRequest, "the output is the link that the service returned")
	}
	return d.findKey(output)
}

// call runs the CLI for a step, shows its output as it comes, and returns it.
func (d *demo) call(ctx context.Context, s step) (output string, err error) {
	words := []string{"$", d.cli.Product}
	for _, arg := range s.args {
		if strings.Contains(arg, " ") {
			arg = "'" + arg + "'"
		}
		words = append(words, arg)
	}
	fmt.Fprintln(d, d.paint("\x1b[1m", strings.Join(words, " ")))
	args := s.args
	if !d.color {
		args = slices.Insert(slices.Clone(args), 1, "-no-color")
	}
	cmd := d.cli.Command(ctx, d.plugin.MirrorConfig, args...)
	cmd.Dir, cmd.Env = d.dir, append(cmd.Env, d.env...)
	var shown bytes.Buffer
	cmd.Stdout = io.MultiWriter(d, &shown)
	cmd.Stderr = cmd.Stdout // the same writer: exec then writes from one goroutine
	leadGroup(cmd)
	cmd.Cancel = func() error { return signalGroup(cmd, syscall.SIGINT) }
	cmd.WaitDelay = grace
	before := d.service.Counts().Message
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if s.interrupt {
		d.interrupt(cmd, before, ended)
	}
	err = <-ended
	if ctx.Err() != nil {
		_ = signalGroup(cmd, syscall.SIGKILL) // what did not end by itself
		return "", errors.New("interrupted")
	}
	if exited := new(exec.ExitError); s.interrupt && errors.As(err, &exited) {
		err = nil
	}
	if s.args[0] == "output" {
		fmt.Fprintln(d) // -raw ends without a line break
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", s.args[0], err)
	}
	return shown.String(), err
}

// interrupt presses Ctrl-C once the provider has sent a message and waits for
// the job, unless the command ends earlier.
func (d *demo) interrupt(cmd *exec.Cmd, before int, ended chan error) {
	press := time.Time{}
	for gets := 0; ; {
		select {
		case err := <-ended:
			ended <- err
			return
		case <-time.After(20 * time.Millisecond):
		}
		now := d.service.Counts()
		switch {
		case now.Message == before:
			gets = now.Get
		case now.Get > gets && press.IsZero():
			press = time.Now().Add(watching)
		case !press.IsZero() && time.Now().After(press):
			fmt.Fprintln(d, "^C")
			_ = signalGroup(cmd, syscall.SIGINT) // if it has just ended, the state will tell
			return
		}
	}
}

// state returns the job in the state file; no id if there is none. A tainted
// job has that as its status.
func (d *demo) state() (id, status string, err error) {
	text, err := os.ReadFile(filepath.Join(d.dir, "terraform.tfstate"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	var file struct {
		Resources []struct {
			Instances []struct {
				Status     string // "tainted", or absent
				Attributes struct{ ID, Status string }
			}
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	for _, resource := range file.Resources {
		for _, instance := range resource.Instances {
			id, status = instance.Attributes.ID, instance.Attributes.Status+instance.Status
		}
	}
	return id, status, err
}

// findKey looks for the key in what a step has shown and written. Links are not
// followed: the plugin is behind one.
func (d *demo) findKey(output string) error {
	if strings.Contains(output, d.key) {
		d.check(false, "the key is in the output")
	}
	return filepath.WalkDir(d.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(d.key)) {
			d.check(false, "the key is in "+path)
		}
		return err
	})
}
