// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package messages

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	// rowInFile is a row of the fault matrix.
	rowInFile = regexp.MustCompile(`(?m)^\| ([CPMNSXAHI]\d\d) \|`)
	// rowInTest is a row's id at the start of a string, which may name a subtest or a row in a table,
	// in the name of a test function, or in brackets in its comment.
	rowInTest = regexp.MustCompile(`["` + "`" + `]([CPMNSXAHI]\d\d)[_ :/"` + "`" + `]|(?m:^func Test\w*?([CPMNSXAHI]\d\d)[_A-Z(]|^// .*\(([CPMNSXAHI]\d\d)\))`)
)

// TestFaultsCoverage fails for a row of FAULTS.md without a test, and for a test in any package whose row is not there.
func TestFaultsCoverage(t *testing.T) {
	faults, err := os.ReadFile("../FAULTS.md")
	if err != nil {
		t.Fatal(err)
	}
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
