// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package bench measures the provider with a real CLI: time, memory, requests,
// and how soon the end of a job is seen.
package bench

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// sixtyBytes is the input of the floor's resources, as long as a prompt of ours.
const sixtyBytes = "Add a quickstart for the Python SDK, please [simulate: 3.0s]"

// lab is what the measurements share.
type lab struct {
	figures
	cli    tfcli.CLI
	plugin tfcli.Plugin
	dir    string
	err    error // the first; no command is run after it
}

// Run measures each figure so often, with no more jobs than most, and prints
// the medians. It writes them to a JSON file too.
func Run(ctx context.Context, repeat, most int, out io.Writer, file string) error {
	dir, err := os.MkdirTemp("", "agent-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l := &lab{dir: dir}
	if l.cli, err = tfcli.Find(ctx, os.Stderr); err != nil {
		return err
	}
	if l.plugin, err = tfcli.InstallPlugin(ctx, dir); err != nil {
		return err
	}
	fmt.Fprintf(out, "CLI: %s\nmedians of %d\n\n", l.cli, repeat)
	if info, err := os.Stat(l.plugin.Executable); err == nil {
		l.note("binary", float64(info.Size())/1e6, "MB", 22.5)
	}
	for i := range repeat {
		fmt.Fprintf(os.Stderr, "repetition %d\n", i+1)
		l.startUp(ctx)
		for _, n := range []int{1, 100, 1000} {
			if n <= most {
				l.jobs(ctx, n)
			}
		}
		l.detection(ctx)
		if l.err != nil {
			return l.err
		}
	}
	l.print(out)
	return l.write(file, l.cli, repeat)
}

// startUp measures commands that call no service.
func (l *lab) startUp(ctx context.Context) {
	ours, floor := l.module(agent+"resource \"agent_job\" \"test\" {\n  prompt = \"write\"\n}\n"), l.module("")
	// So short that a single sample is mostly noise.
	for range 5 {
		validate := l.command(ctx, ours, nil, "validate").wall - l.command(ctx, floor, nil, "validate").wall
		l.note("validate above the floor", milliseconds(validate), "ms", 70)
		schema := []string{"providers", "schema", "-json"}
		l.note("providers schema -json above the floor",
			milliseconds(l.command(ctx, ours, nil, schema...).wall-l.command(ctx, floor, nil, schema...).wall), "ms", 0)
	}
}

// jobs measures apply and plan of n jobs of 3 s, give or take 1 s.
func (l *lab) jobs(ctx context.Context, n int) {
	parallelism := 10
	if n > 100 {
		parallelism = 1000
	}
	plan := []string{"plan", fmt.Sprintf("-parallelism=%d", parallelism)}
	apply := []string{"apply", "-auto-approve", plan[1]}
	note := func(what string, value float64, unit string, goal float64) {
		l.note(fmt.Sprintf("%d jobs: %s", n, what), value, unit, goal)
	}

	floorDir := l.module(fmt.Sprintf("resource \"terraform_data\" \"test\" {\n  count = %d\n  input = %q\n}\n", n, sixtyBytes))
	floor := l.command(ctx, floorDir, nil, apply...)
	floorPlan := l.command(ctx, floorDir, nil, plan...)
	// 60 bytes, in which the simulator finds how long the job takes.
	dir := l.module(fmt.Sprintf(agent+`resource "agent_job" "test" {
  count  = %d
  prompt = "Add a quickstart for the Python SDK, please [simulate: ${format("%%.1f", 2 + (count.index %% 21) / 10)}s]"
}
`, n))
	s := startService()
	defer s.stop()
	ours := l.command(ctx, dir, s.env, apply...)
	jobs, counts := s.Jobs(), s.Counts()
	oursPlan := l.command(ctx, dir, s.env, plan...)
	state, err := os.Stat(filepath.Join(dir, "terraform.tfstate"))
	if err == nil && (len(jobs) != n || counts.Create != n) {
		err = fmt.Errorf("%d jobs and %d creates for %d resources", len(jobs), counts.Create, n)
	}
	if l.err == nil {
		l.err = err
	}
	if l.err != nil {
		return
	}

	note("floor, apply", floor.wall.Seconds(), "s", 0)
	note("apply", ours.wall.Seconds(), "s", map[int]float64{100: 32}[n])
	note("apply, of the floor", ours.wall.Seconds()/floor.wall.Seconds(), "times", map[int]float64{1000: 2}[n])
	note("requests per job", float64(counts.Create+counts.Get)/float64(n), "", 7)
	p50, p99 := latency(jobs)
	note("detection p50", milliseconds(p50), "ms", map[int]float64{100: 450}[n])
	note("detection p99", milliseconds(p99), "ms", 0)
	note("provider memory, apply", float64(ours.peak)/(1<<20), "MiB", map[int]float64{1: 30, 1000: 120}[n])
	note("provider CPU per job, apply", milliseconds(ours.cpu)/float64(n), "ms", 0)
	note("state per job", float64(state.Size())/float64(n), "bytes", map[int]float64{1000: 1000}[n])
	note("floor, plan", floorPlan.wall.Seconds(), "s", 0)
	note("plan with refresh", oursPlan.wall.Seconds(), "s", 0)
	note("plan, of the floor", oursPlan.wall.Seconds()/floorPlan.wall.Seconds(), "times", map[int]float64{1000: 3.5}[n])
	note("provider CPU per job, plan", milliseconds(oursPlan.cpu)/float64(n), "ms", map[int]float64{1000: 2.5}[n])
}

// detection measures how soon the end of jobs of 20 s is seen.
func (l *lab) detection(ctx context.Context) {
	const n = 60
	dir := l.module(fmt.Sprintf(agent+`resource "agent_job" "test" {
  count  = %d
  prompt = "write [simulate: ${format("%%.1f", 19.5 + (count.index %% 11) / 10)}s]"
}
`, n))
	s := startService()
	defer s.stop()
	l.command(ctx, dir, s.env, "apply", "-auto-approve", fmt.Sprintf("-parallelism=%d", n))
	if l.err != nil {
		return
	}
	p50, _ := latency(s.Jobs())
	l.note("jobs of 20s: detection p50", milliseconds(p50), "ms", 1100)
	l.note("jobs of 20s: requests per job", float64(s.Counts().Create+s.Counts().Get)/n, "", 22)
}

// service is a simulator, and what points the provider at it.
type service struct {
	*simulator.Server
	env  []string
	stop func()
}

func startService() service {
	const key = "mint_bench"
	s := simulator.New(simulator.Options{Key: key})
	server := httptest.NewServer(s)
	return service{s, []string{"AGENT_BASE_URL=" + server.URL, "AGENT_ADMIN_KEY=" + key, "AGENT_PROJECT_ID=proj_bench"}, server.Close}
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

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
