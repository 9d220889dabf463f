// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

var (
	// rowInFile is a row of the fault matrix.
	rowInFile = regexp.MustCompile(`(?m)^\| ([CPMXAI]\d\d) \|`)
	// rowInText is a row's id at the start of the name of a subtest or of a row in a table.
	rowInText = regexp.MustCompile(`^([CPMXAI]\d\d)(?:$|[_ :/])`)
	// rowInFunc is one in the name of a test function.
	rowInFunc = regexp.MustCompile(`^Test.*?([CPMXAI]\d\d)(?:$|[_A-Z])`)
)

// TestMatrixCoverage prints how many tests each row of FAULTS.md has. It fails
// for a row without a test, and for a test in any package whose row is not there.
func TestMatrixCoverage(t *testing.T) {
	root, err := tfcli.RepositoryRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "internal", "test", "FAULTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	matrix, _, _ := bytes.Cut(text, []byte("## Planned"))
	rows := rowInFile.FindAllSubmatch(matrix, -1)

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
	covered := len(rows)
	for _, row := range rows {
		id := string(row[1])
		if found[id] == 0 {
			t.Errorf("row %s has no test", id)
			covered--
		}
		t.Logf("%s: %d named tests or groups of them", id, found[id])
		delete(found, id)
	}
	for id := range found {
		t.Errorf("a test names row %s, which is not in the matrix", id)
	}
	t.Logf("%d of %d rows have tests", covered, len(rows))
}
