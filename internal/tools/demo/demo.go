// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package demo shows the provider at work, end to end and without a service:
// a real CLI with the real plugin runs examples/demo against the simulator, and
// what reached the simulator is compared with what should have.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// ErrInterrupted says that the context ended before the demo did.
var ErrInterrupted = errors.New("interrupted")

// Run runs the demo and shows it on out, in color if asked to. The current
// folder must be inside the provider's repository. When ctx ends, so does the
// CLI, as by Ctrl-C. In no case is a file left behind.
func Run(ctx context.Context, out io.Writer, color bool) error {
	if !canInterrupt {
		return fmt.Errorf("the demo presses Ctrl-C, which it cannot do on this system: %w", errors.ErrUnsupported)
	}
	tmp, err := os.MkdirTemp("", "agent-demo-")
	if err != nil {
		return err
	}
	d := &demo{screen: screen{&inTurn{Writer: out}, color}}
	err = d.run(ctx, tmp)
	if err != nil && ctx.Err() != nil {
		err = ErrInterrupted
	}
	return errors.Join(err, os.RemoveAll(tmp))
}

// demo is one run.
type demo struct {
	screen
	cli     tfcli.CLI
	plugin  tfcli.Plugin
	dir     string // the root module
	service *service
	report  report
	jobID   string
	leaks   []string // where the key was found
}

func (d *demo) run(ctx context.Context, tmp string) (err error) {
	d.cli, err = tfcli.Find(ctx, d)
	if err != nil {
		return err
	}
	fmt.Fprintf(d, "CLI:      %s\n", d.cli)
	if err := d.prepare(ctx, tmp); err != nil {
		return err
	}
	d.service = startService()
	defer d.service.stop()
	fmt.Fprintf(d, "service:  simulated, on %s; the key is in AGENT_ADMIN_KEY\n", d.service.url)

	start := time.Now()
	failed := d.runSteps(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	d.report.show(d.screen)
	fmt.Fprintf(d, "\nThat took %s.\n", time.Since(start).Round(time.Second))
	if failed == nil && !d.report.ok() {
		return errors.New("not everything was as expected")
	}
	return failed
}

// prepare builds the provider and copies the example.
func (d *demo) prepare(ctx context.Context, tmp string) error {
	root, err := tfcli.RepositoryRoot(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(d, "provider: building it; the first time this takes a minute")
	d.plugin, err = tfcli.InstallPlugin(ctx, filepath.Join(tmp, "plugin"))
	if err != nil {
		return err
	}
	d.dir = filepath.Join(tmp, "example")
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		return err
	}
	// The configuration alone, not what somebody's own run may have left there.
	text, err := os.ReadFile(filepath.Join(root, "examples", "demo", "main.tf"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.dir, "main.tf"), text, 0o600)
}

// runSteps runs all steps until one ends as it should not.
func (d *demo) runSteps(ctx context.Context) error {
	all := steps()
	for i, step := range all {
		d.headline(fmt.Sprintf("%d/%d  %s", i+1, len(all), step.headline))
		before := d.service.Counts()
		output, exit, err := d.call(ctx, step, before)
		if err != nil {
			return err
		}
		d.report.rows = append(d.report.rows, row{step.name, step.want, plus(d.service.Counts(), before, -1)})
		if err := d.findLeaks(step, output); err != nil {
			return err
		}
		if exit != 0 && !step.interrupt {
			return fmt.Errorf("%s: exit code %d", step.name, exit)
		}
		state, err := readState(d.dir)
		if err != nil {
			return err
		}
		if step.after != nil {
			step.after(d, state, output)
		}
	}
	d.checkService()
	return nil
}

// findLeaks looks for the key in what a step has shown and written.
func (d *demo) findLeaks(step step, output string) error {
	if strings.Contains(output, d.service.key) {
		d.leaks = append(d.leaks, "the output of "+step.name)
	}
	files, err := filesWith(d.dir, d.service.key)
	d.leaks = append(d.leaks, files...)
	return err
}

// checkService looks at the service's side when all is over.
func (d *demo) checkService() {
	jobs := d.service.Jobs()
	want := []string{firstPrompt, secondPrompt, thirdPrompt}
	d.report.check(len(jobs) == 1 && slices.Equal(jobs[0].Prompts, want), "the service has one job, with each of the three prompts once")
	d.report.check(!slices.ContainsFunc(d.service.Requests(), func(r simulator.Request) bool { return !r.Authorized }),
		"every request carried the key")
	where := ""
	if len(d.leaks) > 0 {
		where = ": " + strings.Join(d.leaks, ", ")
	}
	d.report.check(len(d.leaks) == 0, "the key is in no output and in no file%s", where)
}
