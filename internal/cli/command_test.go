// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"strings"
	"testing"
)

func TestCommand(t *testing.T) {
	for arguments, want := range map[string]string{
		"terraform test":                          "test",
		"/usr/bin/tofu plan -out=a":               "plan",
		`C:\terraform.exe test -filter=a`:         "test",
		"terraform -chdir=live test":              "test",
		"terraform -chdir=live -no-color test -v": "test",
		"terraform -chdir=test apply":             "apply",
		"terraform apply test":                    "apply",
		"terraform apply -var=a=test":             "apply",
		"terraform -test apply":                   "apply",
		"terraform tests":                         "tests",
		"test":                                    "", // the program
		"test apply":                              "apply",
		"terraform -version":                      "",
		"terraform":                               "",
		"":                                        "",
	} {
		if got := command(strings.Fields(arguments)); got != want {
			t.Errorf("%q: %q", arguments, got)
		}
	}
}

// A flag of the command line counts before one of the variables, as in the CLI, and where the state is written before
// where it is read. (N29)
func TestStateFile(t *testing.T) {
	for _, test := range []struct{ arguments, ofCommand, ofAll, want string }{
		{"terraform apply", "", "", ""},
		{"terraform apply -state=a.tfstate", "", "", "a.tfstate"},
		{"terraform apply --state a.tfstate -no-color", "", "", "a.tfstate"},
		{"terraform apply -state=a -state=b", "", "", "b"},
		{"terraform apply -state=a -state-out=b", "", "", "b"},
		{"terraform apply -state", "", "", ""},
		{"terraform apply -statex=a -var=-state=b", "", "", ""},
		{"terraform apply", "-no-color -state=a", "", "a"},
		{"terraform apply", "", "-state=a", "a"},
		{"terraform apply", "-state=a", "-state=b", "b"},
		{"terraform plan", "-state=a", "", ""},
		{"terraform apply -state=c", "-state=a", "-state=b", "c"},
		{"terraform apply", `-state="my state" -no-color`, "", "my state"},
		{"terraform apply", `'-state=my state'`, "", "my state"},
	} {
		t.Setenv("TF_CLI_ARGS_apply", test.ofCommand)
		t.Setenv("TF_CLI_ARGS", test.ofAll)
		if got := stateFile(strings.Fields(test.arguments)); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}

// A process looks at the CLI that started it, and only if it was a CLI.
func TestThis_command(t *testing.T) {
	for _, test := range []struct {
		cookie, arguments string
		want              string
	}{
		{"a", "-chdir=live test", "test "}, {"a", "apply -state=s test", "apply s"}, {"", "test", " "},
	} {
		t.Setenv(startedByCLI, test.cookie)
		_, first, _ := startChild(t, "cli", strings.Fields(test.arguments)...)
		if _, got, _ := strings.Cut(first, "runs: "); got != test.want {
			t.Errorf("%+v: %q", test, first)
		}
	}
}
