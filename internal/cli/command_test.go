// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"strings"
	"testing"
)

func TestIsTest(t *testing.T) {
	for arguments, want := range map[string]bool{
		"terraform test":                          true,
		"/usr/bin/tofu test":                      true,
		`C:\terraform.exe test -filter=a`:         true,
		"terraform -chdir=live test":              true,
		"terraform -chdir=live -no-color test -v": true,
		"terraform -chdir=test apply":             false,
		"terraform apply test":                    false,
		"terraform apply -var=a=test":             false,
		"terraform -test apply":                   false,
		"terraform tests":                         false,
		"test":                                    false, // the program
		"test apply":                              false,
		"terraform -version":                      false,
		"terraform":                               false,
		"":                                        false,
	} {
		if got := isTest(strings.Fields(arguments)); got != want {
			t.Errorf("%q: %t", arguments, got)
		}
	}
}

// A process looks at the CLI that started it, and only if it was a CLI.
func TestThis_isTest(t *testing.T) {
	for _, test := range []struct {
		cookie, arguments string
		want              string
	}{
		{"a", "-chdir=live test", "true"}, {"a", "apply test", "false"}, {"", "test", "false"},
	} {
		t.Setenv(startedByCLI, test.cookie)
		_, first, _ := startChild(t, "cli", strings.Fields(test.arguments)...)
		if _, got, _ := strings.Cut(first, "test: "); got != test.want {
			t.Errorf("%+v: %q", test, first)
		}
	}
}
