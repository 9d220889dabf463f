// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race && unix

package explore

import (
	"slices"
	"strings"
)

// breach is a scenario that breaks the promise, and how. It must occur: whoever mends it deletes the row.
type breach struct {
	why      string
	scenario string
	stores   []store
	kinds    []string // of what goes wrong
}

func breaches() []breach {
	return []breach{}
}

func (b breach) is(e *explorer) bool {
	return b.scenario == e.scenario.name && slices.Contains(b.stores, e.store)
}

// isKnown reports whether known breaches explain all that is wrong.
func (e *explorer) isKnown(s *schedule) bool {
	for _, b := range breaches() {
		isOther := func(wrong string) bool {
			return !slices.ContainsFunc(b.kinds, func(kind string) bool { return strings.HasPrefix(wrong, kind) })
		}
		if b.is(e) && !slices.ContainsFunc(s.wrong, isOther) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.breached[b.why]++
			return true
		}
	}
	return false
}

// wantBreaches asserts that the known breaches of the scenario occur.
func (e *explorer) wantBreaches() {
	for _, b := range breaches() {
		if b.is(e) && e.breached[b.why] == 0 && !e.Failed() {
			e.Errorf("%s: mended? Then delete the row in breaches_test.go", b.why)
		}
	}
}
