// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// Red without: ParseURL in providerModel.journal; the variable in origin.
func TestInvalidJournalURL(t *testing.T) {
	const secret = "never-show-this"
	good := harness.NewService(t, nil).Attrs()
	for _, url := range []string{"relative/" + secret, "s3://bucket?endpoint=https://a:" + secret + "@example.com"} {
		diags := fakecli.CheckProvider(t, fakecli.With(good, attrs{"journal": attrs{"url": url}}))
		fakecli.WantPath(t, diags, "journal", "url")
		t.Setenv("AGENT_JOURNAL_URL", url)
		text := fakecli.Text(fakecli.CheckProvider(t, good))
		harness.Contains(t, text, "ERROR: Invalid journal URL", "environment variable AGENT_JOURNAL_URL")
		if strings.Contains(fakecli.Text(diags)+text, secret) {
			t.Errorf("the URL is repeated: %s", text)
		}
	}
	disabled := fakecli.With(good, attrs{"journal": attrs{"enabled": false}})
	if diags := fakecli.CheckProvider(t, disabled); len(diags) > 0 { // it needs no URL
		t.Error(fakecli.Text(diags))
	}
}

// Red without: orEnv and its order in providerModel.journal; dataFolder.
func TestWhereTheJournalIs(t *testing.T) {
	for name, test := range map[string]struct {
		journal  any
		variable string // a folder
		want     string
	}{
		"default":                     {nil, "", "data/agent"},
		"variable":                    {nil, "variable", "variable"},
		"variable, empty block":       {attrs{}, "variable", "variable"},
		"attribute over variable":     {attrs{"url": "attribute"}, "variable", "attribute"},
		"enabled, variable":           {attrs{"enabled": true}, "variable", "variable"},
		"disabled, variable":          {attrs{"enabled": false}, "variable", "none"},
		"disabled, attribute":         {attrs{"enabled": false, "url": "attribute"}, "", "none"},
		"explicit nulls":              {attrs{"enabled": nil, "url": nil}, "", "data/agent"},
		"enabled null, url and block": {attrs{"enabled": nil, "url": "attribute"}, "variable", "attribute"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			t.Setenv("TF_DATA_DIR", filepath.Join(root, "data"))
			if test.variable != "" {
				t.Setenv("AGENT_JOURNAL_URL", filepath.Join(root, test.variable))
			}
			if block, ok := test.journal.(attrs); ok && block["url"] != nil {
				block["url"] = filepath.Join(root, block["url"].(string))
			}
			lostRun(t, "run", fakecli.With(harness.NewService(t, nil).Attrs(), attrs{"journal": test.journal}))
			for _, folder := range []string{"data/agent", "variable", "attribute"} {
				entries, _ := filepath.Glob(filepath.Join(root, folder, "*.json"))
				if (len(entries) > 0) != (folder == test.want) {
					t.Errorf("entries in %s: %q, want them in %s", folder, entries, test.want)
				}
			}
		})
	}
}

// lostRun applies one job in a run whose state and process are lost.
func lostRun(t *testing.T, run journal.Run, config attrs) {
	t.Helper()
	process := harness.Process(t, run)
	c := &fakecli.CLI{T: t}
	if diags := c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: process}), config); len(diags) > 0 {
		t.Fatal(fakecli.Text(diags))
	}
	c.State = c.Decode(nil)
	if diags := c.Run(t.Context(), attrs{"prompt": "write"}); fakecli.Failed(diags) {
		t.Fatal(fakecli.Text(diags))
	}
}

// A backend's settings may hold a token of this run, and a named journal is one
// state's: whatever they are, the same job is found. (In the default folder they
// tell states apart: X07.) Nor does a slash at the end of the base URL matter.
//
// Red without: Named in journalScope, TrimRight in journalScope.
func TestScope_namedJournal(t *testing.T) {
	data := t.TempDir()
	t.Setenv("TF_DATA_DIR", data)
	s := harness.NewService(t, nil)
	folder, base := t.TempDir(), s.Attrs()["base_url"].(string)
	for run, base := range map[journal.Run]string{"run1": base, "run2": base + "/"} {
		config := fakecli.With(s.Attrs(), attrs{"base_url": base, "journal": attrs{"url": folder}})
		state := `{"backend":{"type":"http","config":{"password":"token of ` + string(run) + `"}}}`
		if err := os.WriteFile(filepath.Join(data, "terraform.tfstate"), []byte(state), 0o600); err != nil {
			t.Fatal(err)
		}
		lostRun(t, run, config)
	}
	s.Sent(t, 1, 0)
}
