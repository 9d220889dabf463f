// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"cmp"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
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

// A plan and an apply each warn once that the journal goes with a runner, and only where something is sent.
func TestJournalOnRunner(t *testing.T) {
	const onRunner = "Journal on the runner's disk"
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	bucket := httptest.NewServer(&fakes3.Server{Objects: map[string][]byte{}})
	defer bucket.Close()
	for _, test := range []struct {
		name, variable, command string
		journal                 attrs
		sent                    bool // by an earlier run: the jobs that are planned
		want                    int
	}{
		{name: "laptop", command: "apply"},
		{name: "runner", variable: "CI", command: "plan", want: 1},
		{name: "Jenkins", variable: "JENKINS_URL", command: "apply", want: 1},
		{name: "command line that cannot be read", variable: "CI", want: 1},
		{name: "nothing to send", variable: "CI", command: "apply", sent: true},
		{name: "a folder of its own", variable: "CI", command: "apply", journal: attrs{"url": t.TempDir() + stateName}},
		{name: "a bucket", variable: "CI", command: "apply", journal: attrs{"url": "s3://bucket/a?region=r&state=a&endpoint=" + bucket.URL}},
		{name: "no journal", variable: "CI", command: "apply", journal: attrs{"enabled": false}},
		{name: "a test, which nothing follows", variable: "CI", command: "test"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			s := harness.NewService(t, nil)
			config := fakecli.With(s.Attrs(), attrs{"journal": test.journal})
			r, job := &fakecli.Run{State: fakecli.State{}}, attrs{"name": "first", "prompt": "write"}
			jobs := []fakecli.Resource{{Address: "first", Config: job}, {Address: "second", Config: fakecli.With(job, attrs{"name": "second"})}}
			connect := func() {
				process := harness.Process("run")
				process.Command = test.command
				c := &fakecli.CLI{T: t}
				c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: process}), config)
				r.Plugins, r.Diags = []*fakecli.CLI{c}, nil
			}
			if test.sent {
				connect()
				r.Plan(t.Context(), jobs...)
				r.Apply(t.Context(), jobs...)
			}
			t.Setenv(cmp.Or(test.variable, "NONE"), "true")
			connect()
			r.Plan(t.Context(), jobs...)
			diags := r.Diags
			if test.command == "apply" { // plans again, in another process
				connect()
				r.Apply(t.Context(), jobs...)
				diags = append(diags, r.Diags...)
			}
			if fakecli.Failed(diags) {
				t.Error(fakecli.Text(diags))
			}
			diags = slices.DeleteFunc(diags, func(d *tfprotov6.Diagnostic) bool { return d.Summary != onRunner })
			if len(diags) != test.want {
				t.Errorf("%d warnings, want %d", len(diags), test.want)
			}
		})
	}
}
