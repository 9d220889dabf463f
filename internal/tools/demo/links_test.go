// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	title    = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noAnchor = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// anchors are the names that headings get.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, match := range title.FindAllStringSubmatch(page, -1) {
		name := noAnchor.ReplaceAllString(strings.ToLower(match[1]), "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}

// Every link between the pages of this repository leads somewhere.
func TestLinks(t *testing.T) {
	const root = "../../.."
	pages := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "internal/README.md", "internal/test/FAULTS.md", "internal/tools/README.md"}
	for _, folder := range []string{"docs", "examples"} {
		for _, page := range filesIn(t, filepath.Join(root, folder), ".md") {
			pages = append(pages, folder+"/"+page)
		}
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(anchor, "nested") {
				continue
			}
			linked := text
			if target != "" {
				file := filepath.Join(root, filepath.Dir(page), target)
				if info, err := os.Stat(file); err != nil {
					t.Errorf("%s: %s leads nowhere", page, match[1])
					continue
				} else if info.IsDir() {
					continue
				}
				if linked, err = os.ReadFile(file); err != nil {
					t.Fatal(err)
				}
			}
			if anchor != "" && !anchors(string(linked))[anchor] {
				t.Errorf("%s: %s: no such heading", page, match[1])
			}
		}
	}
}
