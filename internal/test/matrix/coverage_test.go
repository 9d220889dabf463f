// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

var (
	// rowInFile is a row of the fault matrix.
	rowInFile = regexp.MustCompile(`(?m)^\| ([CPMNSXAHI]\d\d) \|`)
	// rowInTest is a row's id at the start of a string, which may name a subtest or
	// a row in a table, or in the name of a test function.
	rowInTest = regexp.MustCompile(`["` + "`" + `]([CPMNSXAHI]\d\d)[_ :/"` + "`" + `]|(?m:^func Test\w*?([CPMNSXAHI]\d\d)[_A-Z(])`)
)

// TestMatrixCoverage fails for a row of FAULTS.md without a test, and for a test
// in any package whose row is not there.
func TestMatrixCoverage(t *testing.T) {
	root, err := tfcli.RepositoryRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	faults, err := os.ReadFile(filepath.Join(root, "internal", "test", "FAULTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".git")):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, id := range rowInTest.FindAllSubmatch(text, -1) {
			found[string(id[1])+string(id[2])]++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rowInFile.FindAllSubmatch(faults, -1) {
		id := string(row[1])
		if found[id] == 0 {
			t.Errorf("row %s has no test", id)
		}
		t.Logf("%s: %d named tests or groups of them", id, found[id])
		delete(found, id)
	}
	for id := range found {
		t.Errorf("a test names row %s, which is not in the matrix", id)
	}
}
