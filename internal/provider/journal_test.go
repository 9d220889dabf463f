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

// The place is that of the attribute, or else of the variable, or else the default one. A plan and an apply each warn once that the
// journal goes with a runner, and only where something is sent.
//
// Red without: orEnv and its order in providerModel.journal.
func TestWhereTheJournalIs(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	bucket := httptest.NewServer(&fakes3.Server{Objects: map[string][]byte{}})
	defer bucket.Close()
	root := t.TempDir()
	folder := func(name string) string { // a local state needs a name to keep its journal there
		if err := os.MkdirAll(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(root, name) + "?state=a"
	}
	const byDefault, nowhere = ".agent-journal", ""
	for _, test := range []struct {
		name, variable, command string
		journal                 attrs  // besides AGENT_JOURNAL_URL, if it is not nil
		sent                    bool   // by an earlier run: the jobs that are planned
		place                   string // of the records
		warns                   int
	}{
		{name: "laptop", command: "apply", place: byDefault},
		{name: "runner", variable: "CI", command: "plan", warns: 1},
		{name: "Jenkins", variable: "JENKINS_URL", command: "apply", place: byDefault, warns: 1},
		{name: "command line that cannot be read", variable: "CI", warns: 1},
		{name: "nothing to send", variable: "CI", command: "apply", sent: true, place: byDefault},
		{name: "variable, empty block", variable: "CI", command: "apply", journal: attrs{}, place: "variable"},
		{name: "attribute over variable", variable: "CI", command: "apply", journal: attrs{"url": folder("attribute")}, place: "attribute"},
		{name: "a bucket", variable: "CI", command: "apply", journal: attrs{"url": "s3://bucket/a?region=r&state=a&endpoint=" + bucket.URL}},
		{name: "no journal", variable: "CI", command: "apply", journal: attrs{"enabled": false}, place: nowhere},
		{name: "a test, which nothing follows", variable: "CI", command: "test"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(root)
			if test.journal != nil {
				t.Setenv("AGENT_JOURNAL_URL", folder("variable"))
			}
			config := fakecli.With(harness.NewService(t, nil).Attrs(), attrs{"journal": test.journal})
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
			diags = slices.DeleteFunc(diags, func(d *tfprotov6.Diagnostic) bool { return d.Summary != "Journal on the runner's disk" })
			if len(diags) != test.warns {
				t.Errorf("%d warnings, want %d", len(diags), test.warns)
			}
			place := nowhere
			records, _ := filepath.Glob("*/*/first-*")
			for _, record := range records {
				place += filepath.Dir(filepath.Dir(record))
				_ = os.RemoveAll(filepath.Dir(record))
			}
			if place != test.place {
				t.Errorf("records in %q, want one in %q", place, test.place)
			}
		})
	}
}
