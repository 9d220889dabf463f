// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Command backends keeps internal/journal/place/settings.tsv: a row for each attribute and environment variable of the backends
// that keep a journal, and what a journal does with it. Rows come and go with the source code of OpenTofu, which is the
// module that internal/tools/source pins, and of Terraform, for which -terraform names a clone: no module has the backends of a
// release. Without a clone, what the table says of Terraform stays. Variables are the names in the backends' own packages: a row
// for one that only a cloud's SDK reads, "SDK" in the table, is written by hand. So is what a journal does; TestSettings checks it.
//
// If a guide is named, the command also writes there which settings a journal cannot use.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/place"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/source"
)

const (
	file   = "internal/journal/place/settings.tsv"
	header = "backend\tsetting\ttype\tin\tstatus\tnote"
	marker = "<!-- what a journal cannot use: internal/tools/backends -->"

	terraform, opentofu, both = "Terraform", "OpenTofu", "both" // or, by hand, "SDK"
)

// setting is a row of the table.
type setting struct{ backend, name, kind, in, status, note string }

type key struct{ backend, name string }

type table map[key]setting

func main() {
	clone := flag.String("terraform", "", "read Terraform's backends in this `folder`, a clone of its repository")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *clone, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "backends:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, clone string, guides []string) error {
	settings, err := load()
	if err != nil {
		return err
	}
	module, err := source.OpenTofu().Download(ctx)
	if err != nil {
		return err
	}
	err = settings.update(opentofu, module)
	if err == nil && clone != "" {
		err = settings.update(terraform, clone)
	}
	if err != nil {
		return err
	}
	if err := settings.save(); err != nil {
		return err
	}
	var unsaid []string
	for _, s := range settings.sorted() {
		if s.status == "" {
			unsaid = append(unsaid, s.backend+" "+s.name)
		}
	}
	if unsaid != nil {
		return fmt.Errorf("%s has new rows, for TestSettings -update: %s", file, strings.Join(unsaid, ", "))
	}
	for _, guide := range guides {
		text, err := os.ReadFile(guide)
		if err != nil {
			return err
		}
		if bytes.Count(text, []byte(marker)) != 1 {
			return fmt.Errorf("%s must have the line %s once", guide, marker)
		}
		if err := os.WriteFile(guide, bytes.Replace(text, []byte(marker), []byte(settings.refused()), 1), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func load() (table, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	settings := table{}
	for i, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
		switch column := strings.Split(line, "\t"); {
		case i == 0 && line == header:
		case i > 0 && len(column) == 6:
			settings[key{column[0], column[1]}] = setting{column[0], column[1], column[2], column[3], column[4], column[5]}
		default:
			return nil, fmt.Errorf("%s:%d: not the columns %s", file, i+1, strings.ReplaceAll(header, "\t", ", "))
		}
	}
	return settings, nil
}

func (t table) save() error {
	lines := []string{header}
	for _, s := range t.sorted() {
		lines = append(lines, strings.Join([]string{s.backend, s.name, s.kind, s.in, s.status, s.note}, "\t"))
	}
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// sorted has capitals, which are variables, after attributes.
func (t table) sorted() []setting {
	return slices.SortedFunc(maps.Values(t), func(a, b setting) int {
		isVariable := func(s setting) string { return strconv.FormatBool(s.kind == "variable") }
		return cmp.Or(cmp.Compare(a.backend, b.backend), cmp.Compare(isVariable(a), isVariable(b)), cmp.Compare(a.name, b.name))
	})
}

// update makes the rows of a CLI those that its source code has.
func (t table) update(cli, root string) error {
	other := map[string]string{terraform: opentofu, opentofu: terraform}[cli]
	for k, s := range t {
		switch s.in {
		case both:
			s.in = other
		case cli:
			s.in = ""
		}
		t[k] = s
	}
	for _, backend := range place.Backends() {
		folder := cmp.Or(map[string]string{"azurerm": "azure"}[backend], backend)
		found, err := read(filepath.Join(root, "internal", "backend", "remote-state", folder))
		if err != nil {
			return fmt.Errorf("%s of %s: %w", backend, cli, err)
		}
		for name, kind := range found {
			k := key{backend, name}
			s := t[k]
			s.backend, s.name, s.kind = backend, name, kind
			if s.in == other {
				s.in = both
			} else {
				s.in = cli
			}
			t[k] = s
		}
	}
	maps.DeleteFunc(t, func(_ key, s setting) bool { return s.in == "" })
	return nil
}

// refused says for each backend what a journal cannot use, and the notes about it.
func (t table) refused() string {
	lines := []string{"| backend | not supported |", "|---|---|"}
	for _, backend := range place.Backends() {
		var always, sometimes []string
		for _, s := range t.sorted() {
			name := "`" + s.name + "`"
			when, isSometimes := strings.CutPrefix(s.note, "refused ")
			switch {
			case s.backend != backend:
			case isSometimes:
				sometimes = append(sometimes, name+" "+when)
			case s.status == "refused" && s.note != "":
				always = append(always, name+" ("+s.note+")")
			case s.status == "refused":
				always = append(always, name)
			}
		}
		lines = append(lines, "| `"+backend+"` | "+strings.Join(append(always, sometimes...), ", ")+" |")
	}
	return strings.Join(lines, "\n")
}

// backendPackage is the source code of a backend.
type backendPackage struct {
	variables map[string]ast.Expr       // of the package, with the values that they begin with
	functions map[string]*ast.BlockStmt // of the package, and methods
	found     map[string]string         // names of settings, and their types
}

var variableNames = regexp.MustCompile(`^[A-Z]+[0-9]*(_[A-Z0-9]+)+$`)

// read returns the settings of the backend whose source code is in a folder.
func read(folder string) (map[string]string, error) {
	b := backendPackage{map[string]ast.Expr{}, map[string]*ast.BlockStmt{}, map[string]string{}}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.ValueSpec:
				for i, value := range node.Values {
					b.variables[node.Names[i].Name] = value
				}
			case *ast.FuncDecl:
				b.functions[node.Name.Name] = node.Body
			case *ast.BasicLit:
				if name, err := strconv.Unquote(node.Value); err == nil && variableNames.MatchString(name) {
					b.found[name] = "variable"
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, function := range []string{"ConfigSchema", "New"} {
		if body := b.functions[function]; body != nil {
			if _, schema := b.typeOf(body); schema != nil {
				return b.found, b.attributes("", schema)
			}
		}
	}
	return nil, errors.New("no schema in ConfigSchema or New: the source code is written otherwise than this command expects")
}

// isSchema reports whether a literal is a map of names to attributes.
func isSchema(literal *ast.CompositeLit) bool {
	isMap, ok := literal.Type.(*ast.MapType)
	if !ok {
		return false
	}
	value := isMap.Value
	if pointer, ok := value.(*ast.StarExpr); ok {
		value = pointer.X
	}
	switch value := value.(type) {
	case *ast.SelectorExpr:
		return value.Sel.Name == "Attribute" || value.Sel.Name == "Schema"
	case *ast.Ident:
		return value.Name == "schemaAttribute" // of Terraform's s3
	}
	return false
}

// attributes finds the attributes of a schema, and those nested in them.
func (b backendPackage) attributes(prefix string, schema *ast.CompositeLit) error {
	for _, element := range schema.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return fmt.Errorf("not a pair in the schema of %q", prefix)
		}
		literal, ok := pair.Key.(*ast.BasicLit)
		if !ok {
			return fmt.Errorf("a name in the schema of %q is no literal", prefix)
		}
		name, err := strconv.Unquote(literal.Value)
		if err != nil {
			return err
		}
		kind, nested := b.typeOf(pair.Value)
		switch {
		case nested != nil:
			err = b.attributes(prefix+name+".", nested)
		case kind != "":
			b.found[prefix+name] = kind
		default:
			err = fmt.Errorf("the type of %s is not known", prefix+name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// types are those of the schemas, by the names that configschema and the older helper/schema give them.
//
//nolint:gochecknoglobals // never changed
var types = map[string]string{
	"String": "string", "Bool": "bool", "Number": "number", "List": "list", "Set": "list", "Map": "map",
	"TypeString": "string", "TypeBool": "bool", "TypeInt": "number", "TypeList": "list", "TypeSet": "list",
	"TypeMap": "map",
}

// typeOf returns the type of an attribute, or the schema in it, or in a function that it calls.
func (b backendPackage) typeOf(attribute ast.Node) (kind string, nested *ast.CompositeLit) {
	ast.Inspect(attribute, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CompositeLit:
			if isSchema(node) {
				nested = node
			}
		case *ast.CallExpr:
			if called, ok := node.Fun.(*ast.Ident); ok && b.functions[called.Name] != nil {
				_, nested = b.typeOf(b.functions[called.Name])
			}
		case *ast.SelectorExpr:
			if of, ok := node.X.(*ast.Ident); ok && node.Sel.Name == "SchemaAttribute" { // of a variable, in Terraform's s3
				_, nested = b.typeOf(b.variables[of.Name])
			}
			kind = cmp.Or(kind, types[node.Sel.Name])
		}
		return nested == nil
	})
	return kind, nested
}
