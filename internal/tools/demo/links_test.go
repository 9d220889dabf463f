// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	title    = regexp.MustCompile(`(?m)^#+ (.*)$`)
	anchorID = regexp.MustCompile(`<a id="(.*?)">`)
	goName   = regexp.MustCompile("`(\\w*[A-Za-z]\\w*)`")
	word     = regexp.MustCompile(`\w+`)
	noAnchor = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// anchors are the names that headings get, and those that the page sets.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, match := range title.FindAllStringSubmatch(page, -1) {
		name := noAnchor.ReplaceAllString(strings.ToLower(match[1]), "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	for _, match := range anchorID.FindAllStringSubmatch(page, -1) {
		all[match[1]] = true
	}
	return all
}

const (
	registry   = "https://registry.terraform.io/providers/agentjobs/agent/latest/docs"
	repository = "https://github.com/agentjobs/terraform-provider-agent/blob/main/"
	raw        = "https://raw.githubusercontent.com/agentjobs/terraform-provider-agent/main/"
)

// Every link to a page or picture of this repository leads somewhere: on GitHub, where the pages are until there is a
// release, and later on registry.terraform.io and search.opentofu.org too. The former shows no relative pictures and
// serves the overview without a trailing slash, so that no relative link works there; the latter keeps ".md" in a link
// with a slash.
func TestLinks(t *testing.T) {
	read := func(file string) string { return read(t, "../"+file) }
	pages := []string{"README.md", "AGENTS.md", "CONTRIBUTING.md", "CHANGELOG.md", "internal/README.md", "internal/PROMISE.md", "internal/test/README.md", "internal/test/FAULTS.md", "internal/tools/README.md"}
	for _, folder := range []string{"docs", "examples"} {
		for _, page := range filesIn(t, filepath.Join(root, folder), ".md") {
			pages = append(pages, folder+"/"+page)
		}
	}
	for _, page := range pages {
		text := read(page)
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			file := path.Join(path.Dir(page), target)
			if here := strings.TrimPrefix(strings.TrimPrefix(target, repository), raw); here != target {
				file = here
			} else if target == "" {
				file = page
			} else if isForeign := strings.Contains(target, "://"); strings.HasPrefix(target, registry) ||
				!isForeign && strings.HasPrefix(page, "docs/") && (page == "docs/index.md" || strings.Contains(target, "/")) {
				t.Errorf("%s: %s leads nowhere on a registry, or until there is a release: use %sdocs/...", page, match[1], repository)
				continue
			} else if isForeign {
				continue
			}
			info, err := os.Stat(filepath.Join(root, file))
			if err != nil {
				t.Errorf("%s: %s leads nowhere", page, match[1])
			} else if anchor != "" && (info.IsDir() || !anchors(read(file))[anchor]) {
				t.Errorf("%s: %s: no such heading", page, match[1])
			}
		}
	}
}

// What the maintainers' pages name is in the code.
func TestLinks_names(t *testing.T) {
	words := map[string]bool{}
	for _, file := range filesIn(t, root, ".go", ".yml", "Makefile") {
		for _, name := range word.FindAllString(read(t, "../"+file), -1) {
			words[name] = true
		}
	}
	for _, page := range []string{"CONTRIBUTING.md", "internal/README.md", "internal/PROMISE.md"} {
		for _, match := range goName.FindAllStringSubmatch(read(t, "../"+page), -1) {
			if !words[match[1]] {
				t.Errorf("%s: nothing has the name %s", page, match[1])
			}
		}
	}
}
