// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package testmatrix

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Result is what the tests came to on one CLI. Only tests without subtests
// are counted.
type Result struct {
	Passed, Failed int
	Skipped        []Skip
	// Failures has what each failed test printed; what fails outside a test,
	// such as the compiler, is there under the package's name, and counted.
	Failures []string
}

// Skip is a skipped test and why it was skipped.
type Skip struct{ Test, Reason string }

// OK says that something passed and nothing failed.
func (r Result) OK() bool { return r.Passed > 0 && r.Failed == 0 }

// An event is a line of "go test -json"; see "go doc test2json".
type event struct {
	Action, Package, ImportPath, Test, Output string
}

// outcome collects what is told of one test, or of a package (no test name).
type outcome struct {
	action string
	output strings.Builder
}

type testID struct{ pkg, test string }

// parent is the test that a subtest belongs to, and the package of any other.
func (id testID) parent() testID {
	return testID{id.pkg, id.test[:max(0, strings.LastIndexByte(id.test, '/'))]}
}

// reason finds what t.Skip was given: the rest of a line that starts with file and line number.
var reason = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: (.*)$`)

// parse reads the output of "go test -json".
func parse(text string) Result {
	outcomes := map[testID]*outcome{}
	for line := range strings.Lines(text) {
		var e event
		if json.Unmarshal([]byte(line), &e) != nil {
			e = event{Action: "output", Output: line} // the go command's own words
		}
		id := testID{e.Package, e.Test}
		if e.ImportPath != "" { // the compiler's words, which may be about a package that this one imports
			id.pkg = "building " + e.ImportPath
		}
		o := outcomes[id]
		if o == nil {
			o = &outcome{}
			outcomes[id] = o
		}
		o.output.WriteString(e.Output)
		switch e.Action {
		case "pass", "fail", "skip", "build-fail":
			o.action = e.Action
		}
	}
	return summarize(outcomes)
}

// summarize counts tests, from the innermost subtests up to the package: what
// has parts that failed is told, but not counted again.
func summarize(outcomes map[testID]*outcome) Result {
	var r Result
	parts, failedParts := map[testID]bool{}, map[testID]bool{}
	for _, id := range slices.Backward(slices.SortedFunc(maps.Keys(outcomes), func(a, b testID) int {
		return strings.Compare(a.pkg+"\x00"+a.test, b.pkg+"\x00"+b.test)
	})) {
		o := outcomes[id]
		isTest := id.test != ""
		if o.action == "" && isTest {
			o.action = "fail" // cut off, by a panic or the time limit
		}
		switch {
		case o.action == "fail" || o.action == "build-fail":
			r.Failures = append(r.Failures, fmt.Sprintf("%s %s\n%s", id.pkg, id.test, o.output.String()))
			if o.action == "fail" && !failedParts[id] { // a failed build fails each package that it was for
				r.Failed++
			}
			failedParts[id.parent()] = true
		case parts[id] || !isTest:
		case o.action == "pass":
			r.Passed++
		case o.action == "skip":
			why := "no reason given"
			if found := reason.FindAllStringSubmatch(o.output.String(), -1); found != nil {
				why = found[len(found)-1][1]
			}
			r.Skipped = append(r.Skipped, Skip{id.test, why})
		}
		parts[id.parent()] = true
	}
	slices.Reverse(r.Skipped)
	slices.Reverse(r.Failures)
	return r
}
