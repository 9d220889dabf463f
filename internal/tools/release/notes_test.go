// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package release

import (
	"strings"
	"testing"
)

func TestNotes(t *testing.T) {
	const changelog = `# Changelog

## [Unreleased]

## [1.10.0] - 2026-02-01

### Added

- New.

## [1.1.0] - 2026-01-01

- Old.
`
	tests := map[string]struct{ version, want, err string }{
		"between two":     {version: "1.10.0", want: "### Added\n\n- New.\n"},
		"the last":        {version: "1.1.0", want: "- Old.\n"},
		"empty":           {version: "Unreleased", err: "says nothing"},
		"none":            {version: "2.0.0", err: "no heading"},
		"part of another": {version: "1.1", err: "no heading"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Notes(changelog, test.version)
			if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %q, %v; want %q, %q", got, err, test.want, test.err)
			}
		})
	}
}
