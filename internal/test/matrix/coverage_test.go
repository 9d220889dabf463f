// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// matrixRows are the rows of the fault matrix, by family.
var matrixRows = map[string]int{
	"C": 14, // creating and sending
	"P": 13, // waiting and reading
	"M": 5,  // messages
	"X": 8,  // interruptions
	"A": 3,  // actions
	"I": 6,  // input
}

var (
	// rowInText is a row's id at the start of the name of a subtest or of a row in a table.
	rowInText = regexp.MustCompile(`^([CPMXAI]\d\d)(?:$|[_ :/])`)
	// rowInFunc is one in the name of a test function.
	rowInFunc = regexp.MustCompile(`^Test.*?([CPMXAI]\d\d)(?:$|[_A-Z])`)
)

// TestMatrixCoverage prints how many tests each row has, and fails for a row
// that has none.
func TestMatrixCoverage(t *testing.T) {
	found := map[string]int{}
	err := filepath.WalkDir("../../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || len(entry.Name()) > 2 && entry.Name()[0] == '.'):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go") || entry.Name() == "coverage_test.go":
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			var id []string
			switch node := node.(type) {
			case *ast.FuncDecl:
				id = rowInFunc.FindStringSubmatch(node.Name.Name)
			case *ast.BasicLit:
				if text, err := strconv.Unquote(node.Value); err == nil && node.Kind == token.STRING {
					id = rowInText.FindStringSubmatch(text)
				}
			}
			if id != nil {
				found[id[1]]++
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	covered, all := 0, 0
	for _, family := range slices.Sorted(maps.Keys(matrixRows)) {
		for n := range matrixRows[family] {
			id := fmt.Sprintf("%s%02d", family, n+1)
			all++
			if found[id] == 0 {
				t.Errorf("row %s has no test", id)
			} else {
				covered++
			}
			t.Logf("%s: %d named tests or groups of them", id, found[id])
			delete(found, id)
		}
	}
	for id := range found {
		t.Errorf("a test names row %s, which is not in the matrix", id)
	}
	t.Logf("%d of %d rows have tests", covered, all)
}
