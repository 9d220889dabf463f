// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// wrong is what must never happen; each is counted.
type wrong string

const (
	duplicates wrong = "duplicates"
	lostIDs    wrong = "lost ids"
	tainted    wrong = "tainted without a failed job"
	keyBytes   wrong = "key bytes found"
	goroutines wrong = "goroutines left"
	other      wrong = "other"
)

// tally adds up what all modules have shown.
type tally struct {
	mu      sync.Mutex
	faults  map[string]int // by row of the matrix; a spell of one fault counts once
	wrongs  map[wrong]int
	numbers map[string]int
}

func newTally() *tally {
	return &tally{faults: map[string]int{}, wrongs: map[wrong]int{}, numbers: map[string]int{}}
}

// fault counts a fault that was really played.
func (s *tally) fault(row string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[row]++
}

func (s *tally) wrong(what wrong, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrongs[what] += n
}

func (s *tally) number(name string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers[name] += n
}

func (s *tally) injected() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, times := range s.faults {
		n += times
	}
	return n
}

func (s *tally) goroutinesLeft(t *testing.T, err error) {
	t.Helper()
	s.wrong(goroutines, strings.Count(err.Error(), "[Goroutine "))
	t.Error(err)
}

func (s *tally) table() string {
	var b strings.Builder
	b.WriteString("faults injected, by class (a spell of one fault counts once):\n")
	all := s.injected()
	for _, id := range slices.Sorted(maps.Keys(s.faults)) {
		fmt.Fprintf(&b, "  %s  %6d  %4.1f%%\n", id, s.faults[id], 100*float64(s.faults[id])/float64(all))
	}
	fmt.Fprintf(&b, "  all  %6d\n", all)
	for _, name := range []string{
		"jobs asked for", "jobs started", "jobs started by an outcome reported as unknown", "messages asked for", "messages delivered",
		"unknown outcomes reported", "interrupts", "jobs that failed by themselves",
	} {
		fmt.Fprintf(&b, "%-48s %6d\n", name, s.numbers[name])
	}
	for _, what := range []wrong{duplicates, lostIDs, tainted, keyBytes, goroutines, other} {
		fmt.Fprintf(&b, "%-48s %6d\n", what, s.wrongs[what])
	}
	return b.String()
}

// check fails for whatever went wrong, and for a mix that is none.
func (s *tally) check(t *testing.T, wanted, mixed int) {
	t.Helper()
	for what, n := range s.wrongs {
		if n != 0 {
			t.Errorf("%s: %d", what, n)
		}
	}
	if t.Failed() || wanted < 1000 { // too few to check the mix by
		return
	}
	least := min(50, 50*wanted/10_000)
	for family, n := range map[string]int{"C": 13, "P": 13, "M": 5} { // rows of FAULTS.md, without C14, which needs a process each
		for i := range n {
			id := fmt.Sprintf("%s%02d", family, i+1)
			if got := s.faults[id]; got < least {
				t.Errorf("%s was played %d times, want %d at least", id, got, least)
			}
		}
	}
	for id, n := range s.faults {
		if n*100 > 15*mixed {
			t.Errorf("%s is %d of %d faults, which is no mix", id, n, mixed)
		}
	}
}
