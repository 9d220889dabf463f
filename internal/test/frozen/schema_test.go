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

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

var update = flag.Bool("update", false, "write the schema of the latest version")

const latest = "0.1"

// flat lists the arguments and attributes of a block, one per line.
func flat(place string, block *tfprotov6.SchemaBlock) (lines []string) {
	for _, a := range block.Attributes {
		line := fmt.Sprintf("%s.%s %s", place, a.Name, strings.ReplaceAll(a.ValueType().String(), "tftypes.", ""))
		flags := []string{" required", " optional", " computed", " sensitive", " write-only", " deprecated"}
		for i, isSet := range []bool{a.Required, a.Optional, a.Computed, a.Sensitive, a.WriteOnly, a.Deprecated} {
			if isSet {
				line += flags[i]
			}
		}
		lines = append(lines, line)
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
		now := slices.Clone(lines)
		if filepath.Base(version) != latest { // later ones may have more
			now = slices.DeleteFunc(now, func(line string) bool { return !slices.Contains(frozen, line) })
		}
		if diff := cmp.Diff(frozen, now); diff != "" {
			t.Errorf("since %s, what is missing (-) breaks users, and what is new (+) makes the next release a minor one: "+
				"freeze it with -update:\n%s", filepath.Base(version), diff)
		}
	}
}
