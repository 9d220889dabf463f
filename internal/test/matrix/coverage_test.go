// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

var (
	update = flag.Bool("update", false, "write into FAULTS.md which packages show a row")
	// rowInFile is a row of the fault matrix, with the packages that show it.
	rowInFile = regexp.MustCompile(`(?m)^(\| ([CPMNSXAHI]\d\d) \|.*\|) ([^|]*) \|$`)
	// rowInTest is a row's id at the start of a string, which may name a subtest or a row in a table,
	// in the name of a test function, or in brackets in its comment.
	rowInTest = regexp.MustCompile(`["` + "`" + `]([CPMNSXAHI]\d\d)[_ :/"` + "`" + `]|(?m:^func Test\w*?([CPMNSXAHI]\d\d)[_A-Z(]|^// .*\(([CPMNSXAHI]\d\d)\))`)
)

// TestMatrixCoverage fails for a row of FAULTS.md without a test, for a test in any package whose row is not there, and if the packages
// in the row are others.
func TestMatrixCoverage(t *testing.T) {
	root, err := tfcli.RepositoryRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "internal", "test", "FAULTS.md")
	faults, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := rowsInTests(t, root)
	updated := rowInFile.ReplaceAllFunc(faults, func(line []byte) []byte {
		row := rowInFile.FindSubmatch(line)
		id := string(row[2])
		packages := strings.Join(slices.Sorted(maps.Keys(found[id])), ", ")
		delete(found, id)
		if packages == "" {
			t.Errorf("row %s has no test", id)
		}
		return fmt.Appendf(nil, "%s %s |", row[1], packages)
	})
	for id := range found {
		t.Errorf("a test names row %s, which is not in the matrix", id)
	}
	if *update {
		err = os.WriteFile(path, updated, 0o600)
	} else if !bytes.Equal(faults, updated) {
		err = errors.New("other packages show some rows: go test ./internal/test/matrix -run TestMatrixCoverage -update writes which")
	}
	if err != nil {
		t.Error(err)
	}
}

// rowsInTests returns the packages whose tests name a row, by its id.
func rowsInTests(t *testing.T, root string) map[string]map[string]bool {
	t.Helper()
	found := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".git")):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, match := range rowInTest.FindAllSubmatch(text, -1) {
			id := string(bytes.Join(match[1:], nil))
			if found[id] == nil {
				found[id] = map[string]bool{}
			}
			found[id][filepath.Base(filepath.Dir(path))] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
