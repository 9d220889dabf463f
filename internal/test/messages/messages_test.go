// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package messages compares what the provider says with what the docs say of it.
package messages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var heading = regexp.MustCompile("(?m)^### (.*)$")

// The guide has a section for each summary of an error or warning that the
// provider can show, and for no other.
func TestGuideHasEveryMessage(t *testing.T) {
	guide, err := os.ReadFile("../../../templates/guides/troubleshooting.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, match := range heading.FindAllStringSubmatch(string(guide), -1) {
		documented = append(documented, match[1])
	}
	want := summaries(t)
	if len(want) < 30 {
		t.Fatalf("only %d summaries found in the code: does the search still work?", len(want))
	}
	slices.Sort(documented)
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("summaries in the code (-) and in the guide (+):\n%s", diff)
	}
}

// commandOfOne is a command that only users of Terraform have.
var commandOfOne = regexp.MustCompile(`\bterraform [a-z]`)

// No text of the provider tells users of OpenTofu a command that they do not have.
func TestTextsNameBothCLIs(t *testing.T) {
	fset := token.NewFileSet()
	for _, parsed := range sources(t, fset, append(speaking(), "prlink")...) {
		ast.Inspect(parsed, func(node ast.Node) bool {
			if text, ok := node.(*ast.BasicLit); ok && commandOfOne.MatchString(text.Value) {
				t.Errorf("%s: %s", fset.Position(text.Pos()), text.Value)
			}
			return true
		})
	}
}

// speaking are the packages that make diagnostics.
func speaking() []string { return []string{"job", "plugin", "provider", "validate", "wording"} }

// sources parses the files of packages, tests left out.
func sources(t *testing.T, fset *token.FileSet, packages ...string) (all []*ast.File) {
	t.Helper()
	var files []string
	for _, name := range packages {
		found, err := filepath.Glob("../../" + name + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, parsed)
	}
	return all
}

// summaries finds the first texts of diagnostics in the package's source: in
// calls that add one, in functions that return one as "summary", and in fields
// of that name.
func summaries(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	fset := token.NewFileSet()
	for _, parsed := range sources(t, fset, speaking()...) {
		note := func(expression ast.Expr) {
			switch e := expression.(type) {
			case *ast.BasicLit:
				text, err := strconv.Unquote(e.Value)
				if err != nil {
					t.Fatal(err)
				}
				found[text] = true
				return
			case *ast.SelectorExpr: // found where it is made
				return
			case *ast.CallExpr: // found in the function, unless that is not ours
				if !strings.HasPrefix(calledName(e), "Sprint") {
					return
				}
			case *ast.Ident: // found where it gets its value
				if strings.HasPrefix(e.Name, "summary") {
					return
				}
			case *ast.BinaryExpr: // "Missing "+attribute: found where AddMissing is called
				return
			}
			t.Errorf("%s: a summary of a form that this test does not know", fset.Position(expression.Pos()))
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.CallExpr:
				switch name := calledName(n); {
				case name == "AddMissing":
					if attribute, ok := n.Args[1].(*ast.BasicLit); ok {
						found["Missing "+strings.Trim(attribute.Value, `"`)] = true
					}
				case strings.HasPrefix(name, "AddAttribute"), name == "failed", strings.HasPrefix(name, "NewAttribute"):
					note(n.Args[1])
				case name == "AddError", name == "AddWarning", name == "NewErrorDiagnostic", name == "NewWarningDiagnostic":
					note(n.Args[0])
				}
			case *ast.FuncDecl:
				if results := n.Type.Results; results != nil && len(results.List) > 0 &&
					len(results.List[0].Names) > 0 && results.List[0].Names[0].Name == "summary" {
					ast.Inspect(n.Body, func(node ast.Node) bool {
						if r, ok := node.(*ast.ReturnStmt); ok && len(r.Results) == 2 {
							note(r.Results[0])
						}
						return true
					})
				}
			case *ast.KeyValueExpr:
				if name, ok := n.Key.(*ast.Ident); ok && strings.EqualFold(name.Name, "summary") {
					note(n.Value)
				}
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if strings.HasPrefix(name.Name, "summary") && i < len(n.Values) {
						note(n.Values[i])
					}
				}
			case *ast.AssignStmt:
				if name, ok := n.Lhs[0].(*ast.Ident); ok && strings.EqualFold(name.Name, "summary") {
					note(n.Rhs[0])
				}
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(found))
}

// calledName is the last part of the name of the function called.
func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}
