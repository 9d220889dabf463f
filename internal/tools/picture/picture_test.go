// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package picture holds what draws the pictures of the docs, and the test of what was drawn.
package picture

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"unicode/utf8"
)

// A picture whose style names an animation that it does not have stands still. A word that leaves its frame is seen in the next one, and
// browsers without the first fonts of a picture have slightly wider ones. The picture of recovery shows no plan and no lock file.
func TestPictures(t *testing.T) {
	pictures, err := filepath.Glob("../../../docs/images/*.svg")
	if err != nil || len(pictures) == 0 {
		t.Fatalf("no pictures: %v", err)
	}
	screen, word := regexp.MustCompile(`viewBox="0 0 (\d+) `), regexp.MustCompile(`<text(?: x="([\d.]+)")? y="[\d.]+"[^>]*>([^<]+)</text>`)
	used := regexp.MustCompile(`animation(?:-name)?:\s*([\w-]+)`)
	for _, picture := range pictures {
		text, err := os.ReadFile(picture)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(picture) == "killed.svg" && regexp.MustCompile(`>(\(known|\.terraform\.lock\.hcl)`).Match(text) {
			t.Errorf("%s: it shows a plan, or the lock file", picture)
		}
		if width := screen.FindSubmatch(text); width != nil {
			columns, _ := strconv.ParseFloat(string(width[1]), 64)
			for _, match := range word.FindAllSubmatch(text, -1) {
				x, _ := strconv.ParseFloat(string(match[1]), 64)
				if shown := html.UnescapeString(string(match[2])); x+1.01*float64(utf8.RuneCountInString(shown)) > columns {
					t.Errorf("%s: it is wider than its frame: %s", picture, shown)
				}
			}
		}
		for _, match := range used.FindAllSubmatch(text, -1) {
			if !regexp.MustCompile(`@keyframes\s+` + string(match[1]) + `\s*\{`).Match(text) {
				t.Errorf("%s: no @keyframes %s", picture, match[1])
			}
		}
	}
}
