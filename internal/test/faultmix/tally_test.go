// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// What must never happen; each is counted.
const (
	duplicates = "duplicates"
	lostIDs    = "lost ids"
	tainted    = "tainted without a failed job"
	keyBytes   = "key bytes found"
	goroutines = "goroutines left"
	other      = "other"
)

// tally adds up what all modules have shown.
type tally struct {
	mu      sync.Mutex
	faults  map[string]int // by row of the matrix; a spell of one fault counts once
	wrongs  map[string]int
	numbers map[string]int
}

func newTally() *tally {
	return &tally{faults: map[string]int{}, wrongs: map[string]int{}, numbers: map[string]int{}}
}

// fault counts a fault that was really played.
func (s *tally) fault(row string)          { s.add(s.faults, row, 1) }
func (s *tally) wrong(what string, n int)  { s.add(s.wrongs, what, n) }
func (s *tally) number(name string, n int) { s.add(s.numbers, name, n) }

func (s *tally) add(to map[string]int, name string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to[name] += n
}

func (s *tally) injected() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, times := range s.faults {
		n += times
	}
	return n
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
	for _, what := range []string{duplicates, lostIDs, tainted, keyBytes, goroutines, other} {
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

// keyWatch searches for the key in all that is written to it, and keeps nothing.
type keyWatch struct {
	mu       sync.Mutex
	rest     []byte
	found    int
	where    string
	complete bool // the log of the client was seen
}

// keyPart is enough of the key to be its beginning and nothing else.
const keyPart = "mint_canary-"

func (k *keyWatch) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.complete = k.complete || bytes.Contains(p, []byte("called the agent service"))
	k.rest = append(k.rest, p...)
	if n := bytes.Count(k.rest, []byte(keyPart)); n > 0 {
		if k.found == 0 {
			at := bytes.Index(k.rest, []byte(keyPart))
			k.where = string(k.rest[max(0, at-200):min(len(k.rest), at+len(keyPart))])
		}
		k.found += n
		k.rest = nil
	}
	k.rest = append(k.rest[:0], k.rest[max(0, len(k.rest)-len(keyPart)+1):]...)
	return len(p), nil
}
