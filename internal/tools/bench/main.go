// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Command bench measures the provider with a real CLI and the simulator: time,
// memory, requests, and how soon the end of a job is seen. The floor is what the
// CLI itself takes in the same run: terraform_data with the same text, which
// starts no provider.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// Prompts as HCL templates. The simulator reads in them how long a job takes:
// about 3 s, and slow 20 s.
const (
	// short is 60 bytes.
	short = `Add a quickstart for the Python SDK, please [simulate: ${format("%.1f", 2 + (count.index % 21) / 10)}s]`
	// long is 20 KB, different for each job.
	long = short + `, page ${count.index}\n${file("../prompt.md")}`
	slow = `write [simulate: ${format("%.1f", 19.5 + (count.index % 11) / 10)}s]`
)

// load is an apply of n jobs, and the plan after it.
type load struct {
	name           string
	n, parallelism int
	argument, text string
	goals          map[string]float64 // upper bounds of figures
}

func loads() []load {
	type goals = map[string]float64
	return []load{
		{"1 jobs", 1, 10, "prompt", short, goals{"requests per job": 7, "provider memory, apply": 30}},
		{"100 jobs", 100, 10, "prompt", short, goals{"apply": 32, "requests per job": 7, "detection p50": 450}},
		{"300 jobs", 300, 300, "prompt", short, nil},
		{"300 jobs, prompt_wo", 300, 300, "prompt_wo", long, goals{"apply, of short prompts": 1.3, "state per job": 950}},
		{"300 jobs, prompt", 300, 300, "prompt", long, nil},
		{"1000 jobs", 1000, 1000, "prompt", short, goals{
			"requests per job": 7, "provider memory, apply": 160, "state per job": 950,
			"apply, of the floor": 2, "plan, of the floor": 4.5, "provider CPU per job, plan": 4.5,
		}},
		{"1000 jobs, prompt_wo", 1000, 1000, "prompt_wo", long, goals{"apply, of short prompts": 1.3, "state per job": 950, "provider memory, apply": 160}},
		{"1000 jobs, prompt", 1000, 1000, "prompt", long, goals{"provider memory, apply": 160}},
		{"60 jobs of 20 s", 60, 60, "prompt", slow, goals{"requests per job": 22, "detection p50": 1100}},
	}
}

// bench is what the measurements share.
type bench struct {
	figures
	cli        tfcli.CLI
	plugin     tfcli.Plugin
	executable os.FileInfo // the plugin's
	dir        string
	short      map[int]float64 // seconds of the last apply of N short prompts, by N
}

func main() {
	repeat := flag.Int("repeat", 3, "measure `n` times and take the medians; 20 KB in prompt only once: that takes minutes")
	most := flag.Int("most", 1000, "the largest `number` of jobs")
	only := flag.String("only", "", "measure only what matches the `regexp`: start-up, journal, or names such as ^1000 jobs(, prompt_wo)?$")
	flag.Parse()
	chosen := regexp.MustCompile(*only)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	dir, err := os.MkdirTemp("", "agent-bench")
	b := bench{dir: dir, short: map[int]float64{}}
	b.check(err)
	b.cli, err = tfcli.Find(ctx, os.Stderr)
	b.check(err)
	b.plugin, err = tfcli.InstallPlugin(ctx, dir)
	b.check(err)
	b.executable, err = os.Stat(b.plugin.Executable)
	b.check(err)
	text := strings.Repeat("Describe each option of the command with its default and one example.\n", 300)[:20_000]
	b.check(os.WriteFile(filepath.Join(dir, "prompt.md"), []byte(text), 0o600))

	b.note("binary", float64(b.executable.Size())/1e6, "MB", 36)
	for i := range *repeat {
		if chosen.MatchString("start-up") {
			b.startUp(ctx)
		}
		if chosen.MatchString("journal") {
			b.journal(ctx, *most)
		}
		for _, l := range loads() {
			minutes := strings.HasSuffix(l.name, ", prompt")
			if l.n <= *most && chosen.MatchString(l.name) && (i == 0 || !minutes) {
				b.measure(ctx, l)
			}
		}
	}
	fmt.Printf("CLI: %s\nmedians of %d (20 KB in prompt: once)\n\n%s", b.cli, *repeat, b.figures)
	b.check(os.RemoveAll(dir))
}

// check ends the benchmark after an error, with what was measured before it.
func (b *bench) check(err error) {
	if err != nil {
		fmt.Print(b.figures)
		_ = os.RemoveAll(b.dir)
		log.Fatal("bench: ", err)
	}
}

// startUp measures commands that call no service.
func (b *bench) startUp(ctx context.Context) {
	ours, floor := b.module("agent_job", 1, "prompt", "write"), b.module("terraform_data", 1, "input", "write")
	above := func(goal float64, args ...string) {
		seconds := b.command(ctx, ours, nil, args...).seconds - b.command(ctx, floor, nil, args...).seconds
		b.note(strings.Join(args, " ")+" above the floor", seconds*1e3, "ms", goal)
	}
	for range 5 { // so short that a single sample is mostly noise
		above(70, "validate")
		above(0, "providers", "schema", "-json")
	}
}

// measure applies and plans a load, then its floor.
func (b *bench) measure(ctx context.Context, l load) {
	n := float64(l.n)
	note := func(what string, value float64, unit string) {
		fmt.Fprintf(os.Stderr, "%s: %s %.2f %s\n", l.name, what, value, unit)
		b.note(l.name+": "+what, value, unit, l.goals[what])
	}
	plan := []string{"plan", fmt.Sprintf("-parallelism=%d", l.parallelism)}
	apply := []string{"apply", "-auto-approve", plan[1]}

	s := simulator.New(simulator.Options{Key: "mint_bench"})
	server := httptest.NewServer(s)
	defer server.Close()
	env := []string{"AGENT_BASE_URL=" + server.URL, "AGENT_ADMIN_KEY=mint_bench", "AGENT_PROJECT_ID=proj_bench", "AGENT_MAX_NEW_JOBS=1000"}
	dir := b.module("agent_job", l.n, l.argument, l.text)
	applied := b.command(ctx, dir, env, apply...)
	jobs, counts := s.Jobs(), s.Counts()
	planned := b.command(ctx, dir, env, plan...)
	state, err := os.Stat(filepath.Join(dir, "terraform.tfstate"))
	b.check(err)
	if len(jobs) != l.n || counts.Create != l.n {
		b.check(fmt.Errorf("%s: %d jobs and %d creates", l.name, len(jobs), counts.Create))
	}
	p50, p99 := latency(jobs)
	note("apply", applied.seconds, "s")
	if l.text == short {
		b.short[l.n] = applied.seconds
	} else if short, ok := b.short[l.n]; ok {
		note("apply, of short prompts", applied.seconds/short, "times")
	}
	note("requests per job", float64(counts.Create+counts.Get)/n, "")
	note("detection p50", p50, "ms")
	note("detection p99", p99, "ms")
	note("provider memory, apply", float64(applied.peak)/1024, "MiB")
	note("provider CPU per job, apply", float64(applied.cpu)/n, "ms")
	note("state per job", float64(state.Size())/n, "bytes")
	note("plan with refresh", planned.seconds, "s")
	note("provider CPU per job, plan", float64(planned.cpu)/n, "ms")

	if l.argument != "prompt_wo" { // terraform_data keeps the text in the state: the floor of prompt
		dir := b.module("terraform_data", l.n, "input", l.text)
		floor := b.command(ctx, dir, nil, apply...)
		floorPlan := b.command(ctx, dir, nil, plan...)
		note("floor, apply", floor.seconds, "s")
		note("apply, of the floor", applied.seconds/floor.seconds, "times")
		note("floor, plan", floorPlan.seconds, "s")
		note("plan, of the floor", planned.seconds/floorPlan.seconds, "times")
	}
}

// latency is how many ms after their ends the jobs were first seen to have ended.
func latency(jobs []simulator.Job) (p50, p99 float64) {
	var all []float64
	for _, j := range jobs {
		all = append(all, j.FirstTerminalGet.Sub(j.EndedAt).Seconds()*1e3)
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*99/100]
}
