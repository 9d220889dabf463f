// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// What make chaos sets: without them, make test runs a part of each grid.
const (
	envRounds = "CHAOS_CLI"    // the number of runs that end at any moment; and all of each grid but
	envCrash  = "CRASH_POINTS" // the crash points
	envSeed   = "CHAOS_SEED"   // of the moments
)

// everyNth returns the cells of a grid that run: all if the variable is set,
// else every nth. It reports the others as skipped.
func everyNth[T any](t *testing.T, variable string, n int, cells []T) []T {
	t.Helper()
	if os.Getenv(variable) != "" {
		return cells
	}
	var some []T
	for i := 0; i < len(cells); i += n {
		some = append(some, cells[i])
	}
	if len(some) < len(cells) {
		t.Run("rest of the grid", func(t *testing.T) {
			t.Skipf("%d of %d cells run only with %s, which make chaos sets", len(cells)-len(some), len(cells), variable)
		})
	}
	return some
}

// rounds is how many runs are ended.
func rounds(t *testing.T, few int) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv(envRounds))
	if os.Getenv(envRounds) == "" {
		return few
	}
	if err != nil {
		t.Fatalf("%s: %v", envRounds, err)
	}
	return n
}

// seed is CHAOS_SEED, or a random one in make chaos and a fixed one in make
// test. It is printed, so that a run can be repeated.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := uint64(1)
	if os.Getenv(envRounds) != "" {
		s = rand.Uint64()
	}
	if text := os.Getenv(envSeed); text != "" {
		var err error
		if s, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", envSeed, err)
		}
	}
	t.Logf("%s=%d", envSeed, s)
	return s
}
