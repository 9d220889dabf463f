// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package messages compares what the provider says with what the docs say of it, and the tests with FAULTS.md.
package messages

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// source is the code of packages, tests and comments left out.
func source(t *testing.T, packages string) string {
	t.Helper()
	var all strings.Builder
	for name := range strings.FieldsSeq(packages) {
		files, _ := filepath.Glob("../../" + name + "/*.go")
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(file, "_test.go") {
				all.Write(text)
			}
		}
	}
	return regexp.MustCompile(`(?m)(^|\s)//.*$`).ReplaceAllString(all.String(), "")
}

// The texts of diagnostics are in one package.
func TestNoOtherPackageWordsDiagnostics(t *testing.T) {
	own := regexp.MustCompile(`(?:AddError|AddWarning|AddAttribute\w+|New\w+Diagnostic)\(\s*(?:path[^\n]*)?"[^\n]*|[^\]]wording\.Diagnostic\{[^\n]*`)
	for _, match := range own.FindAllString(source(t, "job plugin provider check"), -1) {
		t.Error(match)
	}
}

// The guides name each summary of an error or warning that the provider can show, and no other, but for those whose message says all that
// there is to do.
func TestGuideHasEveryMessage(t *testing.T) {
	documented := []string{
		"Active agent job leaves the state", "Agent job adopted", "Agent job archived", "Agent job failed", "Agent job not created", "Agent job not found",
		"Agent job not removed from state", "Agent job not seen active", "Agent job of an earlier run not readable",
		"Agent job still running", "Failed to import agent job", "Failed to read agent job", "Invalid pull request link",
		"Journal on the runner's disk", "Message to agent job not accepted", "New prompt starts a new agent job", "Too many messages to agent jobs",
		"Too many new agent jobs",
		"Agent provider not configured", "Duplicate agent job name", "Internal error in the agent provider", "Invalid CA certificates",
		"Invalid admin key", "Invalid base URL", "Invalid duration", "Invalid id", "Invalid journal URL", "Invalid limit",
		"Invalid prompt", "Message of an earlier run counts as sent",
		"Name gets another agent job", "Name has a running agent job", "Unknown journal settings",
	}
	ofCLI := []string{"Failed to persist state", "Error acquiring the state lock"}
	var found []string
	for _, name := range []string{"troubleshooting", "broken-runs"} {
		guide, err := os.ReadFile("../../../templates/guides/" + name + ".md.tmpl")
		if err != nil {
			t.Fatal(err)
		}
		own, _, _ := strings.Cut(string(guide), "\n## ")
		for _, item := range regexp.MustCompile("(?m)^- `(.*?)`(?:, or a file .*?)?: ").FindAllStringSubmatch(own, -1) {
			documented = append(documented, strings.Split(item[1], "`, `")...)
		}
	}
	documented = slices.DeleteFunc(documented, func(summary string) bool { return slices.Contains(ofCLI, summary) })
	// The first texts of diagnostics: where functions make them, in what is named so, and in the first lines
	// of texts. And the attributes whose summary is made of their name.
	summary := regexp.MustCompile(`(?:diagnostic\(|summary\w*(?:, \w+)* +:?= |Invalid += |Text += )"([A-Z][^".]*?[^". ])(?:"|\\n)`)
	missing := regexp.MustCompile(`wording\.Missing\("(\w+)"`)
	for _, match := range summary.FindAllStringSubmatch(source(t, "wording"), -1) {
		found = append(found, match[1])
	}
	for _, match := range missing.FindAllStringSubmatch(source(t, "job provider"), -1) {
		found = append(found, "Missing "+match[1])
	}
	slices.Sort(documented)
	slices.Sort(found)
	if diff := cmp.Diff(slices.Compact(found), documented); diff != "" {
		t.Errorf("summaries in the code (-) and in the guides (+):\n%s", diff)
	}
}

// No text of the provider tells users of OpenTofu a command that they do not have.
func TestTextsNameBothCLIs(t *testing.T) {
	command := regexp.MustCompile(`\bterraform [a-z]\S*.*?(?:  # or tofu|\n)`)
	for _, match := range command.FindAllString(source(t, "job plugin provider check wording"), -1) {
		if !strings.HasSuffix(match, "  # or tofu") {
			t.Error(match)
		}
	}
}

// TestFaultsCoverage fails for a row of FAULTS.md without a test, and for a test in any package whose row is not there.
func TestFaultsCoverage(t *testing.T) {
	faults, err := os.ReadFile("../FAULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	// A row of the fault matrix, and a row's id at the start of a string, which may name a subtest or a row in a table,
	// in the name of a test function, or in brackets in its comment.
	rowInFile := regexp.MustCompile(`(?m)^\| ([CPMNSXAHI]\d\d) \|`)
	rowInTest := regexp.MustCompile("[\"`]([CPMNSXAHI]\\d\\d)[_ :/\"`]" +
		`|(?m:^func Test\w*?([CPMNSXAHI]\d\d)[_A-Z(]|^// .*\(([CPMNSXAHI]\d\d)\))`)
	rows, shown := map[string]bool{}, map[string]bool{}
	for _, match := range rowInFile.FindAllSubmatch(faults, -1) {
		rows[string(match[1])] = true
	}
	err = filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range rowInTest.FindAllSubmatch(text, -1) {
			shown[string(bytes.Join(match[1:], nil))] = true
		}
		return err
	})
	if diff := cmp.Diff(rows, shown); diff != "" || err != nil {
		t.Errorf("rows without a test (-), and tests without a row (+): %v\n%s", err, diff)
	}
}
