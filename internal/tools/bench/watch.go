// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// sampling is how often the processes are looked at: what a process does
	// in its last such time is not seen.
	sampling = 10 * time.Millisecond
	// clockTick is the unit of /proc's times on Linux.
	clockTick = 10 * time.Millisecond
)

// watch follows all processes of an executable until the returned function is
// called, which tells their CPU time together and the largest resident set.
// It needs /proc; elsewhere it tells zeros.
func watch(ctx context.Context, executable string) func() (cpu time.Duration, peak int64) {
	executable, _ = filepath.EvalSymlinks(executable) // as /proc tells it, wherever the temporary folder is a link to
	ctx, cancel := context.WithCancel(ctx)
	cpu, peak := map[string]time.Duration{}, int64(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(sampling)
		defer ticker.Stop()
		for {
			folders, _ := filepath.Glob("/proc/[0-9]*")
			for _, folder := range folders {
				if link, _ := os.Readlink(filepath.Join(folder, "exe")); link != executable {
					continue
				}
				if used, ok := cpuTime(folder); ok {
					cpu[folder] = used
					peak = max(peak, residentPeak(folder))
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return func() (time.Duration, int64) {
		cancel()
		<-done
		var sum time.Duration
		for _, used := range cpu {
			sum += used
		}
		return sum, peak
	}
}

// cpuTime reads user and system time, fields 14 and 15 of stat.
func cpuTime(folder string) (time.Duration, bool) {
	text, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // behind the name, which may hold anything
	if len(fields) < 13 {
		return 0, false
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * clockTick, true
}

// residentPeak reads the high-water mark of the resident set, in bytes.
func residentPeak(folder string) int64 {
	text, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}
