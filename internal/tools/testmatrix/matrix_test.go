// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package testmatrix

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-version"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

func TestTest(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n",
		"env/env_test.go": `package env

import ("os"; "testing")

func TestAccOnTheCLI(t *testing.T) {
	if os.Getenv("TF_CLI") != "/x/cli" || os.Getenv("TF_ACC_TERRAFORM_PATH") != "/x/cli" || os.Getenv("TF_LOG") != "" {
		t.Fatal(os.Environ())
	}
}

func TestOther(t *testing.T) { t.Fatal("not asked for") }
`,
		"end/end_test.go": `package end

import ("os"; "testing")

func TestMain(*testing.M) { println("no CLI"); os.Exit(1) }
`,
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TF_LOG", "TRACE")
	cli := tfcli.CLI{Path: "/x/cli", Product: tfcli.Terraform, Version: version.Must(version.NewVersion("1.2.3"))}

	got := test(t.Context(), root, cli, selection{"./env", "^TestAcc"})
	if diff := cmp.Diff(Result{Passed: 1}, got); diff != "" {
		t.Error(diff)
	}
	got = test(t.Context(), root, cli, selection{"./end", "."})
	if got.OK() || got.Failed != 1 || !strings.Contains(strings.Join(got.Failures, ""), "no CLI") {
		t.Errorf("got %+v, want a failure with what the package said", got)
	}
	t.Setenv("GOFLAGS", "-nonsense")
	got = test(t.Context(), root, cli, selection{"./env", "."})
	if got.OK() || got.Failed != 1 || !strings.Contains(strings.Join(got.Failures, ""), "nonsense") {
		t.Errorf("got %+v, want a failure with what go said", got)
	}
}
