// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// Red without: orEnv and its order in providerModel.journal; dataFolder.
func TestWhereTheJournalIs(t *testing.T) {
	root := t.TempDir()
	t.Setenv("TF_DATA_DIR", root)
	byDefault, variable, attribute := filepath.Join(root, "agent"), filepath.Join(root, "variable"), filepath.Join(root, "attribute")
	for name, test := range map[string]struct {
		journal  any
		variable string
		want     string // empty: nowhere
	}{
		"default":                 {nil, "", byDefault},
		"variable, empty block":   {attrs{}, variable, variable},
		"attribute over variable": {attrs{"url": attribute}, variable, attribute},
		"enabled, variable":       {attrs{"enabled": true}, variable, variable},
		"disabled, variable":      {attrs{"enabled": false}, variable, ""},
		"explicit nulls":          {attrs{"enabled": nil, "url": nil}, "", byDefault},
	} {
		t.Setenv("AGENT_JOURNAL_URL", test.variable)
		lostRun(t, "run", fakecli.With(harness.NewService(t, nil).Attrs(), attrs{"journal": test.journal}))
		entries, _ := filepath.Glob(filepath.Join(root, "*", "*", "*.json"))
		got := ""
		for _, entry := range entries {
			got += filepath.Dir(filepath.Dir(entry))
			_ = os.Remove(entry)
		}
		if got != test.want {
			t.Errorf("%s: entries in %q, want one in %q", name, got, test.want)
		}
	}
}

// lostRun applies one job in a run whose state and process are lost.
func lostRun(t *testing.T, run cli.Run, config attrs) {
	t.Helper()
	c := fakecli.New(t, config)
	c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: harness.Process(run)}), config)
	if diags := c.Run(t.Context(), attrs{"prompt": "write"}); fakecli.Failed(diags) {
		t.Fatal(fakecli.Text(diags))
	}
}

// A token of this run is no part of the scope, nor is a slash at the end of the base URL.
// The name of a state replaces its backend.
//
// Red without: locating in Backend, TrimRight and State in journalScope.
func TestScope(t *testing.T) {
	data := t.TempDir()
	t.Setenv("TF_DATA_DIR", data)
	s := harness.NewService(t, nil)
	folder, base := t.TempDir(), s.Attrs()["base_url"].(string)
	for i, try := range []struct{ base, address, query string }{
		{base, "https://a/state", ""}, {base + "/", "https://a/state", ""}, {base, "https://b/state", ""},
		{base, "https://a/state", "?state=one"}, {base, "https://b/state", "?state=one"}, {base, "https://b/state", "?state=two"},
	} {
		config := fakecli.With(s.Attrs(), attrs{"base_url": try.base, "journal": attrs{"url": folder + try.query}})
		state := fmt.Sprintf(`{"backend":{"type":"http","config":{"address":%q,"password":"token %d"}}}`, try.address, i)
		if err := os.WriteFile(filepath.Join(data, "terraform.tfstate"), []byte(state), 0o600); err != nil {
			t.Fatal(err)
		}
		lostRun(t, cli.Run(fmt.Sprint("run", i)), config)
	}
	s.Sent(t, 4, 0)
}
