// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestTuneMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	for _, test := range []struct {
		gogc, gomemlimit string // what Go itself has made of them is not touched
		percent          int
		limit            int64
	}{
		{"", "", 400, 100 << 20},
		{"100", "", 100, 100 << 20},
		{"", "off", 400, math.MaxInt64},
	} {
		t.Setenv("GOGC", test.gogc)
		t.Setenv("GOMEMLIMIT", test.gomemlimit)
		debug.SetGCPercent(100)
		debug.SetMemoryLimit(math.MaxInt64)
		tuneMemory()
		if percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1); percent != test.percent || limit != test.limit {
			t.Errorf("GOGC=%q GOMEMLIMIT=%q: %d%%, %d bytes; want %d%%, %d", test.gogc, test.gomemlimit, percent, limit, test.percent, test.limit)
		}
	}
}
