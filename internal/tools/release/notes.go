// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package release

import (
	"fmt"
	"strings"
)

// Notes returns the text below a version's heading in a changelog in the form
// of Keep a Changelog: "## [1.2.3] - 2026-01-31". No such heading, or nothing
// below it, is an error.
func Notes(changelog, version string) (string, error) {
	_, section, found := strings.Cut("\n"+changelog, "\n## ["+version+"]")
	if !found {
		return "", fmt.Errorf(`the changelog has no heading "## [%s]"`, version)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	_, text, _ := strings.Cut(section, "\n")
	if text = strings.TrimSpace(text); text == "" {
		return "", fmt.Errorf("the changelog says nothing below [%s]", version)
	}
	return text + "\n", nil
}
