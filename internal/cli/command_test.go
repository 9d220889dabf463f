// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"strings"
	"testing"
)

func TestCommand(t *testing.T) {
	for arguments, want := range map[string]string{
		"/usr/bin/tofu plan -out=a":               "plan",
		"terraform -chdir=live -no-color test -v": "test",
		"terraform -chdir=test apply":             "apply",
		"terraform apply test":                    "apply",
		"test":                                    "", // the program
		"terraform -version":                      "",
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
		{"terraform apply -state=a.tfstate", "", "", "a.tfstate"},
		{"terraform apply --state a.tfstate -no-color", "", "", "a.tfstate"},
		{"terraform apply -state=a -state=b", "", "", "b"},
		{"terraform apply -state=a -state-out=b", "", "", "b"},
		{"terraform apply -state", "", "", ""},
		{"terraform apply -statex=a -var=-state=b", "", "", ""},
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
