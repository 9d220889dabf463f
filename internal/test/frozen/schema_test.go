// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package frozen compares the schema with that of earlier versions. CONTRIBUTING.md says when to freeze another one.
package frozen

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

var update = flag.Bool("update", false, "write the schema of the latest version")

const latest = "0.1"

// flat lists the arguments and attributes of a block, one per line.
func flat(place string, block *tfprotov6.SchemaBlock) (lines []string) {
	for _, a := range block.Attributes {
		line := fmt.Sprintf("%s.%s %s", place, a.Name, a.ValueType())
		for _, flag := range []struct {
			name string
			set  bool
		}{
			{"required", a.Required}, {"optional", a.Optional}, {"computed", a.Computed}, {"sensitive", a.Sensitive},
			{"write-only", a.WriteOnly}, {"deprecated", a.Deprecated},
		} {
			if flag.set {
				line += " " + flag.name
			}
		}
		lines = append(lines, strings.ReplaceAll(line, "tftypes.", ""))
	}
	for _, b := range block.BlockTypes {
		lines = append(lines, flat(place+"."+b.TypeName, b.Block)...)
	}
	return lines
}

// What users configure and read. A line that is missing or differs breaks their configurations.
func TestSchema(t *testing.T) {
	t.Parallel()
	all := fakecli.Unconfigured(t).Schemas()
	lines := flat("provider", all.Provider.Block)
	for name, schema := range all.ResourceSchemas {
		lines = append(lines, fmt.Sprintf("resource %s version %d", name, schema.Version))
		lines = append(lines, flat("resource "+name, schema.Block)...)
	}
	for name, schema := range all.DataSourceSchemas {
		lines = append(lines, flat("data "+name, schema.Block)...)
	}
	for name, schema := range all.ActionSchemas {
		lines = append(lines, flat("action "+name, schema.Schema.Block)...)
	}
	for name, schema := range all.ListResourceSchemas {
		lines = append(lines, append(flat("list "+name, schema.Block), "list "+name)...)
	}
	for name, function := range all.Functions {
		lines = append(lines, fmt.Sprintf("function %s(%s) %s", name, function.Parameters[0].Type, function.Return.Type))
	}
	slices.Sort(lines)
	if *update {
		text, folder := []byte(strings.Join(lines, "\n")+"\n"), filepath.Join("testdata", latest)
		if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, "schema.txt"), text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	versions, err := filepath.Glob("testdata/*")
	if err != nil || len(versions) == 0 {
		t.Fatal(versions, err)
	}
	for _, version := range versions {
		text, err := os.ReadFile(filepath.Join(version, "schema.txt"))
		if err != nil {
			t.Fatal(err)
		}
		frozen := strings.Split(strings.TrimSpace(string(text)), "\n")
		for _, line := range frozen {
			if !slices.Contains(lines, line) {
				t.Errorf("breaking for users of %s: removed or changed: %s", filepath.Base(version), line)
			}
		}
		for _, line := range lines {
			if filepath.Base(version) == latest && !slices.Contains(frozen, line) {
				t.Errorf("new since %s, so the next release is a minor one: freeze it with -update: %s", latest, line)
			}
		}
	}
}
