// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package picture holds what draws the pictures of the docs, and the test of what was drawn.
package picture

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// A picture whose style names an animation that it does not have stands still.
func TestPictures(t *testing.T) {
	pictures, err := filepath.Glob("../../../docs/images/*.svg")
	if err != nil || len(pictures) == 0 {
		t.Fatalf("no pictures: %v", err)
	}
	used := regexp.MustCompile(`animation(?:-name)?:\s*([\w-]+)`)
	for _, picture := range pictures {
		text, err := os.ReadFile(picture)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range used.FindAllSubmatch(text, -1) {
			if !regexp.MustCompile(`@keyframes\s+` + string(match[1]) + `\s*\{`).Match(text) {
				t.Errorf("%s: no @keyframes %s", picture, match[1])
			}
		}
	}
}
