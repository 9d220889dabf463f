// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
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
	var out bytes.Buffer
	f.print(&out)
	want := `met                                                 3.00 s      at most 3
missed                                              6.00 ms     at most 3, MISSED by 2.00 times
free                                                3.00        
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestLatency(t *testing.T) {
	t.Parallel()
	end := time.Unix(1e9, 0)
	var jobs []simulator.Job
	for i := range 100 {
		seen := end.Add(time.Duration(i*37%100) * time.Second)
		jobs = append(jobs, simulator.Job{EndedAt: end, FirstTerminalGet: seen})
	}
	p50, p99 := latency(jobs)
	if diff := cmp.Diff([]time.Duration{50 * time.Second, 99 * time.Second}, []time.Duration{p50, p99}); diff != "" {
		t.Error(diff)
	}
}

// The folder of a process with a name as bad as may be.
func TestProcessFigures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"stat":   "7 (a) b) S 1 7 7 0 -1 0 9 9 9 9 12 30 99 99 20 0",
		"status": "Name:\ta\nVmRSS:\t 1 kB\nVmHWM:\t 2048 kB\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if used, ok := cpuTime(dir); !ok || used != 420*time.Millisecond {
		t.Errorf("got %s, %t, want 420ms", used, ok)
	}
	if got := residentPeak(dir); got != 2<<20 {
		t.Errorf("got %d, want 2 MiB", got)
	}
}

// This test's own process, by a name that is a link.
func TestWatch(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	if _, peak := watch(t.Context(), link)(); peak == 0 {
		t.Error("the process was not seen")
	}
}
