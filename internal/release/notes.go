// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package release

import (
	"fmt"
	"strings"
)

// Unreleased is the changelog's section of what no release has yet.
const Unreleased = "Unreleased"

// Notes returns the text below a version's heading in a changelog in the form
// of Keep a Changelog: "## [1.2.3] - 2026-01-31", "## [Unreleased]". No such
// heading, or nothing below it, is an error.
func Notes(changelog, version string) (string, error) {
	var notes strings.Builder
	found := false
	for line := range strings.Lines(changelog) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			if found {
				break
			}
			found = strings.HasPrefix(heading, "["+version+"]")
			continue
		}
		if found {
			notes.WriteString(line)
		}
	}
	text := strings.TrimSpace(notes.String())
	switch {
	case !found:
		return "", fmt.Errorf(`the changelog has no heading "## [%s]"`, version)
	case text == "":
		return "", fmt.Errorf("the changelog says nothing below [%s]", version)
	}
	return text + "\n", nil
}
