// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// stateName is what a local state needs to keep its journal in a named folder.
const stateName = "?state=a"

// A folder that is not the default one must exist, because it may be on a volume that is not mounted (G6).
//
// Red without: orEnv and its order in providerModel.journal; makeDir in the store.
func TestWhereTheJournalIs(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	byDefault, variable, attribute := filepath.Join(root, ".agent-journal"), filepath.Join(root, "variable"), filepath.Join(root, "attribute")
	for _, folder := range []string{variable, attribute} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		journal  any
		variable string
		want     string // empty: nowhere
	}{
		"default":                 {nil, "", byDefault},
		"variable, empty block":   {attrs{}, variable + stateName, variable},
		"attribute over variable": {attrs{"url": attribute + stateName}, variable, attribute},
		"disabled, variable":      {attrs{"enabled": false}, variable + stateName, ""},
	} {
		t.Setenv("AGENT_JOURNAL_URL", test.variable)
		config := fakecli.With(harness.NewService(t, nil).Attrs(), attrs{"journal": test.journal})
		c := fakecli.New(t, config)
		c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: harness.Process("run")}), config)
		if diags := c.Run(t.Context(), attrs{"prompt": "write"}); fakecli.Failed(diags) {
			t.Fatal(fakecli.Text(diags))
		}
		records, _ := filepath.Glob(filepath.Join(root, "*", "*", "a-*"))
		got := ""
		for _, record := range records {
			got += filepath.Dir(filepath.Dir(record))
			_ = os.RemoveAll(record)
		}
		if got != test.want {
			t.Errorf("%s: records in %q, want one in %q", name, got, test.want)
		}
	}
}

// That the journal goes with a runner is said a single time, and only where something would be sent.
func TestJournalOnRunner(t *testing.T) {
	const onRunner = "WARNING: Journal on the runner's disk"
	for _, test := range []struct {
		name, variable string
		journal        attrs
		sent           bool // by an earlier run: the job that is planned
		want           string
	}{
		{name: "laptop"},
		{name: "runner", variable: "CI", want: onRunner},
		{name: "Jenkins", variable: "JENKINS_URL", want: onRunner},
		{name: "nothing to send", variable: "CI", sent: true},
		{name: "a place of its own", variable: "CI", journal: attrs{"url": t.TempDir() + stateName}},
		{name: "no journal", variable: "CI", journal: attrs{"enabled": false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, variable := range []string{
				"CI", "TF_IN_AUTOMATION", "TF_BUILD", "TFC_RUN_ID", "TF_VAR_spacelift_run_id", "ENV0_ENVIRONMENT_ID", "SCALR_RUN_ID",
				"ATLANTIS_TERRAFORM_VERSION", "JENKINS_URL", "TEAMCITY_VERSION", "CODEBUILD_BUILD_ID",
			} {
				t.Setenv(variable, "")
			}
			s := harness.NewService(t, nil)
			c := fakecli.New(t, s.Attrs())
			planned := attrs{"prompt": "write"}
			if test.sent {
				c.Run(t.Context(), planned)
			}
			if test.variable != "" {
				t.Setenv(test.variable, "true")
			}
			c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: harness.Process("second")}), fakecli.With(s.Attrs(), attrs{"journal": test.journal}))
			second := *c
			second.Forget()
			second.Name = "second"
			diags := c.Plan(t.Context(), planned)
			if !test.sent {
				diags = append(diags, second.Plan(t.Context(), attrs{"prompt": "write more"})...)
			}
			if got := fakecli.Text(diags); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" || len(diags) > 1 {
				t.Errorf("want %q in:\n%s", test.want, got)
			}
		})
	}
}
