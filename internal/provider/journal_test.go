// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
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
		"enabled, variable":       {attrs{"enabled": true}, variable + stateName, variable},
		"disabled, variable":      {attrs{"enabled": false}, variable + stateName, ""},
		"explicit nulls":          {attrs{"enabled": nil, "url": nil}, "", byDefault},
	} {
		t.Setenv("AGENT_JOURNAL_URL", test.variable)
		lostRun(t, "run", fakecli.With(harness.NewService(t, nil).Attrs(), attrs{"journal": test.journal}))
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
		want, says     string
	}{
		{name: "laptop"},
		{name: "runner", variable: "CI", want: onRunner},
		{name: "runner of Azure", variable: "TF_BUILD", want: onRunner},
		{name: "Jenkins", variable: "JENKINS_URL", want: onRunner, says: "Use a bucket, or a folder that outlives the runner. For that, set"},
		{name: "a script", variable: "TF_IN_AUTOMATION", want: onRunner},
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
			if got := fakecli.Text(diags); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" || len(diags) > 1 || !strings.Contains(got, test.says) {
				t.Errorf("want %q, and %q, in:\n%s", test.want, test.says, got)
			}
		})
	}
}

// initialized makes a fresh checkout, initialized for a backend. Empty is none, and a local state.
func initialized(t *testing.T, backend string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if backend == "" {
		return
	}
	if err := os.Mkdir(".terraform", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(".terraform", "terraform.tfstate"), []byte(backend), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Without a word about the journal, what a lost runner has started is found by the next one, if the state is in a bucket.
// A backend that cannot be used is an error before anything is sent.
//
// Red without: Beside and each error in locate; each place in options.
func TestJournalBesideState(t *testing.T) {
	f := fakes3.New(t)
	_, endpoint, _ := strings.Cut(f.URL, "endpoint=")
	backend := func(settings string) string {
		return `{"backend": {"type": "s3", "config": {"bucket": "bucket", "key": "app/state", "region": "us-east-1", "use_path_style": true, ` +
			`"endpoints": {"s3": "` + endpoint + `"}` + settings + `}}}`
	}
	const unusable = "WARNING: Journal not usable"
	for _, test := range []struct {
		name, first, second string // backends
		journal             any    // of the second run
		want                string
		jobs                int
	}{
		{name: "a fresh checkout", first: backend(""), second: backend(`, "profile": null`), jobs: 1},
		{name: "another key", first: backend(""), second: strings.Replace(backend(""), "app/", "other/", 1), jobs: 2},
		{name: "a damaged file", first: backend(""), second: backend("")[1:], want: unusable, jobs: 1},
		{name: "a setting", first: backend(""), second: backend(`, "not_known": true`), want: unusable, jobs: 1},
		{name: "a setting, and a place of its own", first: backend(""), second: backend(`, "not_known": true`), journal: attrs{"url": t.TempDir()}, jobs: 2},
		{name: "no journal", first: backend(""), second: backend(`, "not_known": true`), journal: attrs{"enabled": false}, jobs: 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			f.Clear()
			s := harness.NewService(t, nil)
			initialized(t, test.first)
			lostRun(t, "first", s.Attrs())
			for key := range f.Objects {
				if !strings.HasPrefix(key, "app/state.agent-journal/") {
					t.Errorf("an entry is %s", key)
				}
			}
			initialized(t, test.second)
			config := fakecli.With(s.Attrs(), attrs{"journal": test.journal})
			c := fakecli.New(t, s.Attrs())
			diags := c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: harness.Process("second")}), config)
			if len(diags) > 0 {
				t.Errorf("a command that sends nothing: %s", fakecli.Text(diags))
			}
			diags = c.Run(t.Context(), attrs{"prompt": "write"})
			if got := fakecli.Text(diags); !strings.Contains(got, test.want) {
				t.Errorf("want %q in:\n%s", test.want, got)
			}
			s.Sent(t, test.jobs, 0)
		})
	}
}

// States that nothing identifies must not share their names. Commands that send nothing work without a name of the state.
//
// Red without: errNoStateName, each part of its condition.
func TestJournalOfUnknownState(t *testing.T) {
	const noName, http = "add ?state=NAME", `{"backend": {"type": "http", "config": {"address": "https://host/state"}}}`
	for _, test := range []struct {
		name, backend, state string
		command              string
		want                 string // in the error
	}{
		{name: "no backend", want: noName},
		{name: "local backend", backend: `{"backend": {"type": "local", "config": {"path": "a.tfstate"}}}`, want: noName},
		{name: "moved back from a backend", backend: `{"backend": null, "state_store": null}`, want: noName},
		{name: "named state", state: stateName},
		{name: "test", command: "test"},
		{name: "another backend", backend: http, want: noName},
		{name: "another backend, named state", backend: http, state: stateName},
		{name: "a bucket", backend: `{"backend": {"type": "gcs", "config": {"bucket": "a"}}}`},
		{name: "state store", backend: `{"state_store": {"type": "a_b", "config": {"at": "a"}}}`, want: noName},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := harness.NewService(t, nil)
			initialized(t, test.backend)
			config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": t.TempDir() + test.state}})
			process := harness.Process("run")
			process.Command = test.command
			c := fakecli.New(t, s.Attrs())
			if diags := c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: process}), config); len(diags) > 0 {
				t.Errorf("a command that sends nothing: %s", fakecli.Text(diags))
			}
			diags := c.Run(t.Context(), attrs{"prompt": "write"})
			if got := fakecli.Text(diags); !strings.Contains(got, test.want) || fakecli.Failed(diags) != (test.want != "") {
				t.Errorf("want %q in:\n%s", test.want, got)
			}
			jobs := 1
			if test.want != "" {
				jobs = 0
			}
			s.Sent(t, jobs, 0)
		})
	}
}

// A test neither adopts a job of the state, nor one of another test, wherever their journal is. (N26)
//
// Red without: the run in the scope.
func TestJournalOfTest(t *testing.T) {
	t.Chdir(t.TempDir())
	s := harness.NewService(t, nil)
	named := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": t.TempDir()}})
	lostRun(t, "production", s.Attrs())
	for i, test := range []struct {
		run    cli.Run
		config attrs
	}{{"test1", s.Attrs()}, {"test2", s.Attrs()}, {"test3", named}, {"test4", named}} {
		process := harness.Process(test.run)
		process.Command = "test"
		c := fakecli.New(t, test.config)
		c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: process}), test.config)
		if diags := c.Run(t.Context(), attrs{"prompt": "write"}); len(diags) > 0 {
			t.Errorf("%d: %s", i, fakecli.Text(diags))
		}
	}
	lostRun(t, "production2", s.Attrs()) // adopts its own
	s.Sent(t, 5, 0)
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

// A token of this run is no part of the scope, nor is how the base URL is spelled.
// The name of a state replaces its backend.
//
// Red without: Locating, credentials in Backend.ID, CanonicalURL and State in options.
func TestScope(t *testing.T) {
	t.Chdir(t.TempDir())
	data := t.TempDir()
	t.Setenv("TF_DATA_DIR", data)
	s := harness.NewService(t, nil)
	folder, base := t.TempDir(), strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	other := strings.Replace(base, "http", "HTTP", 1) + "//"
	for i, try := range []struct{ base, backend, at, journal string }{
		{base, "http", "a", ""}, {other, "http", "a", ""}, {base, "http", "b", ""},
		{base, "gcs", "a", folder}, {base, "gcs", "a", folder}, {base, "gcs", "b", folder},
		{base, "http", "a", folder + "?state=one"}, {base, "gcs", "b", folder + "?state=one"}, {base, "http", "b", folder + "?state=two"},
	} {
		config := fakecli.With(s.Attrs(), attrs{"base_url": try.base})
		if try.journal != "" {
			config["journal"] = attrs{"url": try.journal}
		}
		state := fmt.Sprintf(`{"backend":{"type":%q,"config":{"bucket":%q,"password":"token %d"}}}`, try.backend, try.at, i)
		if err := os.WriteFile(filepath.Join(data, "terraform.tfstate"), []byte(state), 0o600); err != nil {
			t.Fatal(err)
		}
		lostRun(t, cli.Run(fmt.Sprint("run", i)), config)
	}
	s.Sent(t, 6, 0)
}
