// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"archive/zip"
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

// step is one call of the CLI.
type step struct {
	headline string
	name     string // in the table
	args     []string
	checkout bool   // on another machine: what is not in the repository is gone
	kill     bool   // kill the CLI while it waits; any exit code will do
	create   int    // POSTs that it should send
	get      bool   // whether it should send GETs
	status   string // of the job in the state afterwards; "" if it has none
}

func steps() []step {
	apply := func(release string) []string { return []string{"apply", "-auto-approve", "-var=release=" + release} }
	return []step{
		{headline: "Install the provider that was just built", name: "init", args: []string{"init"}},
		{headline: "Plan: shows the prompt, and sends nothing", name: "plan", args: []string{"plan", "-var=release=v2.4.0"}},
		{headline: "Apply: one job. Once it is done, the release is published, and the pull request merged", name: "apply",
			args: apply("v2.4.0"), create: 1, get: true, status: "completed"},
		{headline: "Nothing has changed: no changes (or -detailed-exitcode would exit with 2)", name: "plan again",
			args: []string{"plan", "-var=release=v2.4.0", "-detailed-exitcode"}, get: true, status: "completed"},
		{headline: "The next release: another job, another pull request", name: "apply, next release",
			args: apply("v2.5.0"), create: 1, get: true, status: "completed"},
		{headline: "One more release, and the runner dies while it waits", name: "apply, killed",
			args: apply("v2.6.0"), create: 1, get: true, kill: true},
		{headline: "Another runner: a new checkout, without the state", name: "init",
			args: []string{"init"}, checkout: true},
		{headline: "Apply: the job of the killed run is adopted, nothing is sent, and the release is published", name: "apply again",
			args: apply("v2.6.0"), get: true, status: "completed"},
	}
}

// do runs a step and compares what it sent and left with what it should have.
func (d *demo) do(ctx context.Context, s step) error {
	if s.checkout {
		if err := errors.Join(os.RemoveAll(d.dir), os.CopyFS(d.dir, os.DirFS(d.example))); err != nil {
			return err
		}
	}
	before := d.service.Counts()
	output, err := d.call(ctx, s)
	if err != nil {
		return err
	}
	after := d.service.Counts()
	create, get := after.Create-before.Create, after.Get-before.Get
	id, status, err := d.state()
	if err != nil {
		return err
	}
	if s.kill {
		status = "" // this machine is gone
	}
	jobs := d.service.Jobs()
	if status != "" && id != jobs[len(jobs)-1].ID {
		status += ", another job"
	}
	ok := create == s.create && (get > 0) == s.get && after.Message == 0 && after.Other == 0 && status == s.status
	gets := map[bool]string{true: "1 or more", false: "0"}[s.get]
	d.rows = append(d.rows, fmt.Sprintf("%s\t%d / %d\t%d / %s\t%s / %s\t%s", s.name, create, s.create,
		get, gets, cmp.Or(status, "none"), cmp.Or(s.status, "none"), d.verdict(ok)))
	if s.args[0] == "apply" && !s.kill {
		link := jobs[len(jobs)-1].PullRequest
		d.check(link != "" && strings.Contains(output, `pull_request = "`+link+`"`), "the output of "+s.name+" is the link that the service returned")
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
	before := d.service.Counts().Create
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if s.kill {
		d.kill(cmd, before, ended)
	}
	err = <-ended
	if ctx.Err() != nil {
		_ = signalGroup(cmd, syscall.SIGKILL) // what did not end by itself
		return "", errors.New("interrupted")
	}
	if exited := new(exec.ExitError); s.kill && errors.As(err, &exited) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", s.args[0], err)
	}
	return shown.String(), err
}

// kill kills the CLI and the provider once that has started a job and waits for it, unless the command ends earlier.
func (d *demo) kill(cmd *exec.Cmd, before int, ended chan error) {
	at := time.Time{}
	for gets := 0; ; {
		select {
		case err := <-ended:
			ended <- err
			return
		case <-time.After(20 * time.Millisecond):
		}
		now := d.service.Counts()
		switch {
		case now.Create == before:
			gets = now.Get
		case now.Get > gets && at.IsZero():
			at = time.Now().Add(watching)
		case !at.IsZero() && time.Now().After(at):
			_ = signalGroup(cmd, syscall.SIGKILL) // if it has just ended, the requests will tell
			fmt.Fprintln(d, "Killed")
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
			Type      string
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
		if resource.Type != "agent_job" {
			continue
		}
		for _, instance := range resource.Instances {
			id, status = instance.Attributes.ID, instance.Attributes.Status+instance.Status
		}
	}
	return id, status, err
}

// findKey looks for the key in what a step has shown and written.
func (d *demo) findKey(output string) error {
	if strings.Contains(output, d.key) {
		d.check(false, "the key is in the output")
	}
	files, err := filesWith(d.key, os.DirFS(d.dir))
	for _, file := range files {
		d.check(false, "the key is in "+file)
	}
	return err
}

// filesWith returns the files that have a text: states, journals, logs and saved plans, which are compressed. Links are not
// followed: the plugin is behind one.
func filesWith(text string, tree fs.FS) (files []string, _ error) {
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := fs.ReadFile(tree, path)
		if plan, notZip := zip.NewReader(bytes.NewReader(content), int64(len(content))); notZip == nil {
			inPlan, planErr := filesWith(text, plan)
			files, err = append(files, inPlan...), errors.Join(err, planErr)
		}
		if bytes.Contains(content, []byte(text)) {
			files = append(files, path)
		}
		return err
	})
	return files, err
}
