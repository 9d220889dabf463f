// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// Red without: ParseURL in providerModel.journal; the variable in origin.
func TestInvalidJournalURL(t *testing.T) {
	const secret = "never-show-this"
	for _, url := range []string{"relative/" + secret, "s3://bucket?endpoint=https://a:" + secret + "@example.com"} {
		for name, check := range map[string]func(t *testing.T) string{
			"attribute": func(t *testing.T) string {
				config := fakecli.With(harness.NewService(t, nil).Attrs(), attrs{"journal": attrs{"url": url}})
				diags := fakecli.CheckProvider(t, config)
				fakecli.WantPath(t, diags, tftypes.NewAttributePath().WithAttributeName("journal").WithAttributeName("url"))
				return fakecli.Text(diags)
			},
			"variable": func(t *testing.T) string {
				t.Setenv("AGENT_JOURNAL_URL", url)
				text := fakecli.Text(fakecli.CheckProvider(t, harness.NewService(t, nil).Attrs()))
				harness.Contains(t, text, "environment variable AGENT_JOURNAL_URL")
				return text
			},
		} {
			t.Run(name+" "+url, func(t *testing.T) {
				text := check(t)
				harness.Contains(t, text, "ERROR: Invalid journal URL")
				if strings.Contains(text, secret) {
					t.Errorf("the URL is repeated: %s", text)
				}
			})
		}
	}
	t.Run("a disabled journal needs none", func(t *testing.T) {
		t.Setenv("AGENT_JOURNAL_URL", "relative")
		config := fakecli.With(harness.NewService(t, nil).Attrs(), attrs{"journal": attrs{"enabled": false}})
		if diags := fakecli.CheckProvider(t, config); len(diags) > 0 {
			t.Error(fakecli.Text(diags))
		}
	})
}

// Red without: orEnv and its order in providerModel.journal; dataFolder.
func TestWhereTheJournalIs(t *testing.T) {
	for name, c := range map[string]struct {
		journal  any
		variable string // a folder
		want     string
	}{
		"default":                     {nil, "", "data/agent"},
		"empty block":                 {attrs{}, "", "data/agent"},
		"variable":                    {nil, "variable", "variable"},
		"variable, empty block":       {attrs{}, "variable", "variable"},
		"attribute":                   {attrs{"url": "attribute"}, "", "attribute"},
		"attribute over variable":     {attrs{"url": "attribute"}, "variable", "attribute"},
		"enabled, variable":           {attrs{"enabled": true}, "variable", "variable"},
		"disabled":                    {attrs{"enabled": false}, "", ""},
		"disabled, variable":          {attrs{"enabled": false}, "variable", ""},
		"disabled, attribute":         {attrs{"enabled": false, "url": "attribute"}, "", ""},
		"explicit nulls":              {attrs{"enabled": nil, "url": nil}, "", "data/agent"},
		"enabled null, url and block": {attrs{"enabled": nil, "url": "attribute"}, "variable", "attribute"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			t.Setenv("TF_DATA_DIR", filepath.Join(root, "data"))
			if c.variable != "" {
				t.Setenv("AGENT_JOURNAL_URL", filepath.Join(root, c.variable))
			}
			if block, ok := c.journal.(attrs); ok && block["url"] != nil {
				block["url"] = filepath.Join(root, block["url"].(string))
			}
			s := harness.NewService(t, nil)
			process := journal.NewProcess("run", func(err error) { t.Error(err) })
			cli := &fakecli.CLI{T: t}
			config := fakecli.With(s.Attrs(), attrs{"journal": c.journal})
			if diags := cli.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: process}), config); len(diags) > 0 {
				t.Fatal(fakecli.Text(diags))
			}
			cli.State = cli.Decode(nil)
			if diags := cli.Run(t.Context(), attrs{"prompt": "write"}); len(diags) > 0 {
				t.Fatal(fakecli.Text(diags))
			}
			var got string
			err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
				if err == nil && strings.HasSuffix(path, ".json") {
					got, err = filepath.Rel(root, filepath.Dir(path))
					got = filepath.ToSlash(got)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("folder of the entry (-want +got):\n%s", diff)
			}
		})
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
		cli := &fakecli.CLI{T: t}
		process := journal.NewProcess(run, func(err error) { t.Error(err) })
		if diags := cli.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: process}), config); len(diags) > 0 {
			t.Fatal(fakecli.Text(diags))
		}
		cli.State = cli.Decode(nil) // the one of the first run is lost
		if diags := cli.Run(t.Context(), attrs{"prompt": "write"}); fakecli.Failed(diags) {
			t.Fatal(fakecli.Text(diags))
		}
	}
	s.Sent(t, 1, 0)
}
