// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race && unix

package explore

import (
	"regexp"
	"slices"
	"testing"
)

// breach is how a scenario breaks the promise. It must occur: whoever mends it deletes the row.
type breach struct {
	why      string
	scenario string
	stores   []store
	wrong    string // a pattern
}

func breaches() []breach {
	all, named, byDefault, inBucket := []store{bucket, namedFolder, defaultFolder}, []store{bucket, namedFolder}, []store{defaultFolder}, []store{bucket}
	const again, sharedJob = "^(sent twice|lost|left): ", "^shared: "
	rows := func(why string, stores []store, wrong string, scenarios ...string) (rows []breach) {
		for _, scenario := range scenarios {
			rows = append(rows, breach{why, scenario, stores, wrong})
		}
		return rows
	}
	return slices.Concat(
		rows("F1: the default folder is emptied before a remote backend stores the state", byDefault, again,
			"create, remote state", "message, remote state", "replacement, remote state", "-replace, remote state"),
		rows("F4: a destroy forgets messages", all, "^sent twice: job", "message, then -replace, remote state"),
		rows("F5: the runs do not see each other's requests", []store{bucket, defaultFolder}, again+"|^hidden: ",
			"two runs create", "two runs create equal jobs", "two runs create chained jobs", "two runs send a message"),
		rows("F6: no plan names the job of a killed replacement", named, "^hidden: ", "-replace"),
		rows("F6: no plan names the job of a killed replacement", all, "^hidden: ", "-replace, remote state", "message, then -replace, remote state"),
		rows("F7: three states take over each other's jobs", named, sharedJob, "three states"),
		rows("F8: a clock set back makes a later message the earlier one", all, again, "message after the clock was set back"),
		rows("F8: an import unblocks a create that it proves nothing about", all, again, "import of an older job"),
		rows("F8: a late delete removes the entry of the next attempt", inBucket, again+"|^hidden: ", "refused create, late delete"),
		rows("F9: two entries name one job", inBucket, sharedJob+"|^hidden: ", "two equal creates at once"),
		rows("F11: a test forgets a lost job", all, again, "test after a create"),
	)
}

func (b breach) key() string { return b.scenario + b.why }

func (b breach) is(e *explorer) bool {
	return b.scenario == e.scenario.name && slices.Contains(b.stores, e.store)
}

// isKnown reports whether known breaches explain all that is wrong.
func (e *explorer) isKnown(s *schedule) bool {
	var explain []string
	for _, wrong := range s.wrong {
		i := slices.IndexFunc(breaches(), func(b breach) bool { return b.is(e) && regexp.MustCompile(b.wrong).MatchString(wrong) })
		if i < 0 {
			return false
		}
		explain = append(explain, breaches()[i].key())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, why := range explain {
		e.breached[why]++
	}
	return true
}

// wantBreaches asserts that all known breaches occurred, each in one of its stores.
func (t *tally) wantBreaches(test *testing.T) {
	test.Helper()
	for _, b := range breaches() {
		isPlayed := slices.ContainsFunc(scenarios(), func(s scenario) bool {
			return s.name == b.scenario && slices.ContainsFunc(b.stores, s.isPlayed)
		})
		if isPlayed && t.breached[b.key()] == 0 {
			test.Errorf("no longer so in %q, delete the row in breaches_test.go: %s", b.scenario, b.why)
		}
	}
}
