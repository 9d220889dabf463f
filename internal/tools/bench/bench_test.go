// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

func TestFigures(t *testing.T) {
	t.Parallel()
	var f figures
	for _, value := range []float64{9, 1, 3} {
		f.note("met", value, "s", 3)
		f.note("missed", 2*value, "ms", 3)
		f.note("free", value, "", 0)
		f.note("not measured", 0, "MiB", 3)
	}
	want := `met                                                   3.00 s      at most 3
missed                                                6.00 ms     at most 3, MISSED by 2.00 times
free                                                  3.00        
`
	if diff := cmp.Diff(want, f.String()); diff != "" {
		t.Error(diff)
	}
}

func TestLatency(t *testing.T) {
	t.Parallel()
	var jobs []simulator.Job
	for i := range 100 {
		jobs = append(jobs, simulator.Job{FirstTerminalGet: time.Time{}.Add(time.Duration(i*37%100) * time.Millisecond)})
	}
	if p50, p99 := latency(jobs); p50 != 50 || p99 != 99 {
		t.Errorf("got %f and %f, want 50 and 99", p50, p99)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	stat := "7 (name) S 1 7 7 0 -1 0 9 9 9 9 12 30 99 99 20 0\n"
	status := "Name:\tname\nVmRSS:\t 1 kB\nVmHWM:\t 2048 kB\n"
	for text, want := range map[string][2]int{"": {}, stat: {}, stat + status: {420, 2048}} {
		if cpu, peak := usage(text); cpu != want[0] || peak != want[1] {
			t.Errorf("got %d ms and %d kB, want %d", cpu, peak, want)
		}
	}
}
