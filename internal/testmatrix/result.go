// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package testmatrix

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
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

// reason finds what t.Skip was given: the rest of a line that starts with file and line number.
var reason = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: (.*)$`)

// parse reads the output of "go test -json".
func parse(in io.Reader) (Result, error) {
	outcomes := map[testID]*outcome{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			e = event{Action: "output", Output: lines.Text() + "\n"} // the go command's own words
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
	return summarize(outcomes), lines.Err()
}

func summarize(outcomes map[testID]*outcome) Result {
	order := slices.SortedFunc(maps.Keys(outcomes), func(a, b testID) int {
		return strings.Compare(a.pkg+"\x00"+a.test, b.pkg+"\x00"+b.test)
	})
	parents := map[testID]bool{}
	failedIn := map[string]bool{} // packages with a failed test
	for id, o := range outcomes {
		for i, c := range id.test {
			if c == '/' {
				parents[testID{id.pkg, id.test[:i]}] = true
			}
		}
		// A test that never ended was cut off, by a panic or the time limit.
		failedIn[id.pkg] = failedIn[id.pkg] || id.test != "" && (o.action == "fail" || o.action == "")
	}

	var r Result
	for _, id := range order {
		o := outcomes[id]
		fail := func() { r.Failures = append(r.Failures, fmt.Sprintf("%s %s\n%s", id.pkg, id.test, o.output.String())) }
		switch {
		case o.action == "build-fail": // counted with each package that it was built for
			fail()
		case id.test == "" && (o.action != "fail" || failedIn[id.pkg]):
			// A package fails with its tests; that is counted there.
			if o.action == "fail" {
				fail()
			}
		case o.action == "fail" && parents[id]:
			fail()
		case parents[id]:
		case o.action == "pass":
			r.Passed++
		case o.action == "skip":
			why := "no reason given"
			if found := reason.FindAllStringSubmatch(o.output.String(), -1); found != nil {
				why = found[len(found)-1][1]
			}
			r.Skipped = append(r.Skipped, Skip{id.test, why})
		default:
			r.Failed++
			fail()
		}
	}
	return r
}
