// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package bench measures the provider with a real CLI: time, memory, requests,
// and how soon the end of a job is seen.
package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tfcli"
)

// Options say what is measured.
type Options struct {
	Repeat int    // how often; the medians are reported
	Most   int    // the largest number of jobs
	JSON   string // file for the figures
}

// Figure is one measured value: the median of the repetitions.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Goal  float64 `json:"goal,omitempty"` // at most; 0: none
}

// lab is what the measurements share.
type lab struct {
	cli     tfcli.CLI
	plugin  tfcli.Plugin
	service *service
	dir     string
	repeat  int
	out     io.Writer
	samples map[string][]float64
	order   []Figure
}

// Run measures, and prints a table and a JSON file.
func Run(ctx context.Context, o Options, out io.Writer) error {
	dir, err := os.MkdirTemp("", "agent-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l := &lab{dir: dir, repeat: o.Repeat, out: out, samples: map[string][]float64{}}
	if l.cli, err = tfcli.Find(ctx, os.Stderr); err != nil {
		return err
	}
	if l.plugin, err = tfcli.InstallPlugin(ctx, dir); err != nil {
		return err
	}
	if l.service, err = startService(ctx, dir); err != nil {
		return err
	}
	defer l.service.stop()

	fmt.Fprintf(out, "CLI: %s\nmedians of %d\n\n", l.cli, o.Repeat)
	if info, err := os.Stat(l.plugin.Executable); err == nil {
		l.note("binary", float64(info.Size())/1e6, "MB", 20)
	}
	for i := range o.Repeat {
		fmt.Fprintf(os.Stderr, "repetition %d\n", i+1)
		if err := l.startUp(ctx); err != nil {
			return err
		}
		for _, n := range []int{1, 100, 1000} {
			if n > o.Most {
				continue
			}
			if err := l.jobs(ctx, n); err != nil {
				return err
			}
		}
		if err := l.detection(ctx, 20*time.Second, 60); err != nil {
			return err
		}
	}
	return l.report(o.JSON)
}

// note keeps one sample of a figure.
func (l *lab) note(name string, value float64, unit string, goal float64) {
	if _, known := l.samples[name]; !known {
		l.order = append(l.order, Figure{Name: name, Unit: unit, Goal: goal})
	}
	l.samples[name] = append(l.samples[name], value)
}

// startUp measures commands that call no service.
func (l *lab) startUp(ctx context.Context) error {
	ours, floor := l.module("resource \"agent_job\" \"test\" {\n  prompt = \"write\"\n}\n"), l.floorModule("")
	// So short that a single sample is mostly noise.
	for _, args := range slices.Repeat([][]string{{"validate"}, {"providers", "schema", "-json"}}, 5) {
		mine, err := l.command(ctx, ours, args...)
		if err != nil {
			return err
		}
		base, err := l.command(ctx, floor, args...)
		if err != nil {
			return err
		}
		goal := 0.0
		if args[0] == "validate" {
			goal = 70
		}
		l.note(strings.Join(args, " ")+" above the floor", milliseconds(mine.wall-base.wall), "ms", goal)
	}
	return nil
}

// jobs measures apply and plan of n jobs of 3 s, give or take 1 s.
func (l *lab) jobs(ctx context.Context, n int) error {
	parallelism := 10
	if n > 100 {
		parallelism = 1000
	}
	name := func(what string) string { return fmt.Sprintf("%d jobs: %s", n, what) }
	flag := fmt.Sprintf("-parallelism=%d", parallelism)

	floorDir := l.floorModule(fmt.Sprintf("resource \"terraform_data\" \"test\" {\n  count = %d\n  input = \"%s\"\n}\n", n, sixtyBytes))
	floor, err := l.command(ctx, floorDir, "apply", "-auto-approve", flag)
	if err != nil {
		return err
	}
	floorPlan, err := l.command(ctx, floorDir, "plan", flag)
	if err != nil {
		return err
	}
	// 60 bytes, in which the simulator finds how long the job takes.
	dir := l.module(fmt.Sprintf(`resource "agent_job" "test" {
  count  = %d
  prompt = "Add a quickstart for the Python SDK, please [simulate: ${format("%%.1f", 2 + (count.index %% 21) / 10)}s]"
}
`, n))
	if err := l.service.reset(ctx); err != nil {
		return err
	}
	apply, err := l.command(ctx, dir, "apply", "-auto-approve", flag)
	if err != nil {
		return err
	}
	jobs, counts, err := l.service.seen(ctx)
	if err != nil {
		return err
	}
	if len(jobs) != n || counts.Create != n {
		return fmt.Errorf("%d jobs and %d creates for %d resources", len(jobs), counts.Create, n)
	}
	l.note(name("floor, apply"), seconds(floor), "s", 0)
	l.note(name("apply"), seconds(apply), "s", map[int]float64{100: 32}[n])
	l.note(name("apply, of the floor"), seconds(apply)/seconds(floor), "times", map[int]float64{1000: 2}[n])
	l.note(name("requests per job"), float64(counts.Create+counts.Get)/float64(n), "", 7)
	p50, p99 := latency(jobs)
	l.note(name("detection p50"), milliseconds(p50), "ms", map[int]float64{100: 450}[n])
	l.note(name("detection p99"), milliseconds(p99), "ms", 0)
	l.note(name("provider memory, apply"), float64(apply.peak)/(1<<20), "MiB", map[int]float64{1: 30, 1000: 120}[n])
	l.note(name("provider CPU per job, apply"), milliseconds(apply.cpu)/float64(n), "ms", 0)
	state, err := os.Stat(filepath.Join(dir, "terraform.tfstate"))
	if err != nil {
		return err
	}
	l.note(name("state per job"), float64(state.Size())/float64(n), "bytes", map[int]float64{1000: 1000}[n])

	plan, err := l.command(ctx, dir, "plan", flag)
	if err != nil {
		return err
	}
	l.note(name("floor, plan"), seconds(floorPlan), "s", 0)
	l.note(name("plan with refresh"), seconds(plan), "s", 0)
	l.note(name("plan, of the floor"), seconds(plan)/seconds(floorPlan), "times", map[int]float64{1000: 3.5}[n])
	l.note(name("provider CPU per job, plan"), milliseconds(plan.cpu)/float64(n), "ms", map[int]float64{1000: 2.5}[n])
	return nil
}

// detection measures how soon the end of longer jobs is seen.
func (l *lab) detection(ctx context.Context, length time.Duration, n int) error {
	dir := l.module(fmt.Sprintf(`resource "agent_job" "test" {
  count  = %d
  prompt = "write [simulate: ${format("%%.1f", %f + (count.index %% 11) / 10)}s]"
}
`, n, length.Seconds()-0.5))
	if err := l.service.reset(ctx); err != nil {
		return err
	}
	if _, err := l.command(ctx, dir, "apply", "-auto-approve", fmt.Sprintf("-parallelism=%d", n)); err != nil {
		return err
	}
	jobs, counts, err := l.service.seen(ctx)
	if err != nil {
		return err
	}
	p50, _ := latency(jobs)
	l.note(fmt.Sprintf("jobs of %s: detection p50", length), milliseconds(p50), "ms", 1100)
	l.note(fmt.Sprintf("jobs of %s: requests per job", length), float64(counts.Create+counts.Get)/float64(n), "", 22)
	return nil
}

// latency is how long after their ends the jobs were first seen to have ended.
func latency(jobs []simulator.Job) (p50, p99 time.Duration) {
	var all []time.Duration
	for _, j := range jobs {
		all = append(all, j.FirstTerminalGet.Sub(j.EndedAt))
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*99/100]
}

func seconds(r result) float64 { return r.wall.Seconds() }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// report prints the medians, and writes them down.
func (l *lab) report(file string) error {
	for i, figure := range l.order {
		all := slices.Sorted(slices.Values(l.samples[figure.Name]))
		l.order[i].Value = all[len(all)/2]
		verdict := ""
		if figure.Goal > 0 {
			verdict = fmt.Sprintf("at most %g", figure.Goal)
			if l.order[i].Value > figure.Goal {
				verdict += fmt.Sprintf(", MISSED by %.2f times", l.order[i].Value/figure.Goal)
			}
		}
		fmt.Fprintf(l.out, "%-45s %10.2f %-6s %s\n", figure.Name, l.order[i].Value, figure.Unit, verdict)
	}
	text, err := json.MarshalIndent(struct {
		CLI     string   `json:"cli"`
		Repeat  int      `json:"repeat"`
		Figures []Figure `json:"figures"`
	}{l.cli.Product + " " + l.cli.Version.String(), l.repeat, l.order}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}
