// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// result is one run of the CLI. CPU and memory are those of the provider's processes.
type result struct {
	seconds float64
	cpu     int // ms, together
	peak    int // kB, the largest resident set of one
}

// module writes a root module with n resources that have a text in an argument.
func (b *bench) module(kind string, n int, argument, text string) string {
	dir, err := os.MkdirTemp(b.dir, "module")
	b.check(err)
	more := ""
	if kind == "agent_job" {
		more = "  name = \"page-${count.index}\"\n"
	}
	config := fmt.Sprintf("resource %q \"test\" {\n  count = %d\n%s  %s = \"%s\"\n}\n", kind, n, more, argument, text)
	if kind == "agent_job" {
		config += "terraform {\n  required_providers {\n    agent = { source = \"" + tfcli.Source + "\" }\n  }\n}\nprovider \"agent\" {}\n"
	}
	b.check(os.WriteFile(filepath.Join(dir, "main.tf"), []byte(config), 0o600))
	return dir
}

// command runs the CLI in a folder and samples the provider's processes, where
// there is a /proc. What they use in the last 10 ms is not seen.
func (b *bench) command(ctx context.Context, dir string, env []string, args ...string) (r result) {
	cmd := b.cli.Command(ctx, b.plugin.OverrideConfig, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(cmd.Env, env...), os.Stderr
	ended := make(chan error)
	go func() {
		start := time.Now()
		err := cmd.Run()
		r.seconds = time.Since(start).Seconds()
		ended <- err
	}()
	cpu := map[string]int{} // by process
	for tick := time.Tick(10 * time.Millisecond); ; {
		select {
		case err := <-ended:
			b.check(err)
			return r
		case <-tick:
		}
		folders, _ := filepath.Glob("/proc/[0-9]*")
		for _, folder := range folders {
			if exe, err := os.Stat(folder + "/exe"); err != nil || !os.SameFile(exe, b.executable) {
				continue
			}
			stat, _ := os.ReadFile(folder + "/stat")
			status, _ := os.ReadFile(folder + "/status")
			used, peak := usage(string(stat) + string(status))
			r.cpu += max(0, used-cpu[folder])
			cpu[folder], r.peak = max(used, cpu[folder]), max(r.peak, peak)
		}
	}
}

// usage reads a process's CPU time in ms and its peak in kB from /proc's stat
// and status. They are 0 when it has just ended. Its name has no spaces.
func usage(text string) (cpu, peak int) {
	fields := strings.Fields(text)
	i := slices.Index(fields, "VmHWM:")
	if i < 0 {
		return 0, 0
	}
	user, _ := strconv.Atoi(fields[13]) // in ticks of 10 ms
	system, _ := strconv.Atoi(fields[14])
	peak, _ = strconv.Atoi(fields[i+1])
	return 10 * (user + system), peak
}

// figure is what was measured under a name.
type figure struct {
	name, unit string
	goal       float64 // at most; 0: none
	samples    []float64
}

// figures are in the order in which they were first noted.
type figures []figure

// note keeps a sample. A zero was not measured: it must not look as if it had met a goal.
func (f *figures) note(name string, value float64, unit string, goal float64) {
	if value == 0 {
		return
	}
	i := slices.IndexFunc(*f, func(known figure) bool { return known.name == name })
	if i < 0 {
		i = len(*f)
		*f = append(*f, figure{name: name, unit: unit, goal: goal})
	}
	(*f)[i].samples = append((*f)[i].samples, value)
}

// String is a table of the medians beside their goals.
func (f figures) String() string {
	var table strings.Builder
	for _, known := range f {
		slices.Sort(known.samples)
		median, verdict := known.samples[len(known.samples)/2], ""
		if known.goal > 0 {
			verdict = fmt.Sprintf("at most %g", known.goal)
			if median > known.goal {
				verdict += fmt.Sprintf(", MISSED by %.2f times", median/known.goal)
			}
		}
		fmt.Fprintf(&table, "%-47s %10.2f %-6s %s\n", known.name, median, known.unit, verdict)
	}
	return table.String()
}
