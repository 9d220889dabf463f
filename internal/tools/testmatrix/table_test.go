// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package testmatrix

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-version"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

func TestShow(t *testing.T) {
	cli := func(product, v string) tfcli.CLI {
		return tfcli.CLI{Product: product, Version: version.Must(version.NewVersion(v))}
	}
	var out strings.Builder
	err := show(&out, []row{
		{cli: cli(tfcli.Terraform, "1.11.4"), note: "run by make test"},
		{cli: cli(tfcli.Tofu, "1.12.6"), took: 61 * time.Second, result: &Result{Passed: 30, Failed: 1, Skipped: []Skip{{"TestA", "why"}}}},
		{cli: cli(tfcli.Terraform, "1.16.3"), result: &Result{}},
	})
	if want := "tofu 1.12.6: 1 failed, 30 passed\nterraform 1.16.3: 0 failed, 0 passed"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	want := `
CLI        VERSION  PASSED  FAILED  SKIPPED  TOOK
terraform  1.11.4   -       -       -        run by make test
tofu       1.12.6   30      1       1        1m1s
terraform  1.16.3   0       0       0        0s
skipped on tofu 1.12.6: TestA: why
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
