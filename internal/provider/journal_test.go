// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

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

// Each of these warns a single time, and only where something would be sent: that the journal goes with a
// runner, and that the name of a job has a record where the journal is by default.
func TestJournalPlace_warnings(t *testing.T) {
	const onRunner, elsewhere = "WARNING: Journal on the runner's disk", "WARNING: Name has a record in another journal"
	for _, test := range []struct {
		name, variable string
		journal        attrs
		left           string // by an earlier run: the name of a job in the default place
		sent           bool   // by an earlier run: the job that is planned
		want, says     string
	}{
		{name: "laptop"},
		{name: "runner", variable: "CI", want: onRunner},
		{name: "runner of Azure", variable: "TF_BUILD", want: onRunner},
		{name: "Jenkins", variable: "JENKINS_URL", want: onRunner, says: "Jenkins: use a bucket, or a folder that all agents mount. For that, set"},
		{name: "a script", variable: "TF_IN_AUTOMATION", want: onRunner},
		{name: "nothing to send", variable: "CI", sent: true},
		{name: "a place of its own", variable: "CI", journal: attrs{"url": t.TempDir() + stateName}},
		{name: "no journal", variable: "CI", journal: attrs{"enabled": false}},
		{name: "a new place", journal: attrs{"url": t.TempDir() + stateName}, left: "a", want: elsewhere},
		{name: "another name in a new place", journal: attrs{"url": t.TempDir() + stateName}, left: "lost"},
		{name: "nothing to send from a new place", journal: attrs{"url": t.TempDir() + stateName}, left: "lost", sent: true},
		{name: "the default place", left: "lost"},
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
			if test.left != "" {
				c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: harness.Process("first")}), s.Attrs())
				c.Run(t.Context(), attrs{"name": test.left, "prompt": "write something else"})
				c.Forget()
			}
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

// A plan that sends something says that the last apply kept the journal elsewhere, and the apply after it ends that. A folder
// has other paths on other machines.
//
// Red without: Moved, placeID in Prune and in Ref, each reportMoved.
func TestJournalMoved(t *testing.T) {
	const warning = "WARNING: Journal of the last apply not used"
	f, folder, other := fakes3.New(t), attrs{"url": t.TempDir() + stateName}, attrs{"url": t.TempDir() + stateName}
	url := f.URL + "&state=a"
	bucket, prefix := attrs{"url": url}, attrs{"url": strings.Replace(url, "prefix", "other", 1)}
	slash, none := attrs{"url": strings.Replace(url, "prefix", "prefix/", 1)}, attrs{"enabled": false}
	for _, test := range []struct {
		name          string
		before, after any
		want          bool
	}{
		{"pipeline with a bucket, then a laptop", bucket, nil, true},
		{"pipeline with a folder, then a laptop", folder, nil, true},
		{"laptop, then pipeline", nil, bucket, true},
		{"another prefix", bucket, prefix, true},
		{"another state", bucket, attrs{"url": f.URL + "&state=x"}, true},
		{"the same bucket", bucket, slash, false},
		{"two laptops", nil, nil, false},
		{"a folder with another path", folder, other, false},
		{"none", bucket, none, false},
		{"none before", none, bucket, false},
	} {
		for _, createFirst := range []bool{false, true} {
			s := harness.NewService(t, nil)
			c := fakecli.New(t, s.Attrs())
			run := 0
			connect := func(journal any) {
				t.Chdir(t.TempDir())
				run++
				process := harness.Process(cli.Run(fmt.Sprint("run", run)))
				c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: process}), fakecli.With(s.Attrs(), attrs{"journal": journal}))
			}
			warns := func() bool {
				created := *c
				created.Forget()
				created.Name = "new"
				keep := func() []*tfprotov6.Diagnostic {
					return append(c.Refresh(t.Context()), c.Plan(t.Context(), attrs{"prompt": "write"})...)
				}
				create := func() []*tfprotov6.Diagnostic { return created.Plan(t.Context(), attrs{"prompt": "new"}) }
				first, second := keep, create
				if createFirst {
					first, second = create, keep
				}
				got := fakecli.Text(append(first(), second()...))
				if strings.Count(got, "WARNING") > 1 || got != "" && !strings.HasPrefix(got, warning) {
					t.Errorf("%s: %s", test.name, got)
				}
				return got != ""
			}
			connect(test.before)
			if diags := c.Run(t.Context(), attrs{"prompt": "write"}); len(diags) > 0 {
				t.Fatal(fakecli.Text(diags))
			}
			connect(test.after)
			stored := c.Instance
			if got := fakecli.Text(append(c.Refresh(t.Context()), c.Plan(t.Context(), attrs{"prompt": "write"})...)); got != "" {
				t.Errorf("%s: a plan that sends nothing: %s", test.name, got)
			}
			c.Instance = stored
			if connect(test.after); test.want && !warns() {
				t.Errorf("%s, create first: %t: no warning", test.name, createFirst)
			}
			if connect(test.after); warns() {
				t.Errorf("%s, create first: %t: a warning after the state was stored", test.name, createFirst)
			}
		}
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
// What a local state left behind is said, and a backend that cannot be used is an error before anything is sent.
//
// Red without: Beside and each error in locate; each place in options.
func TestJournalBesideState(t *testing.T) {
	f := fakes3.New(t)
	_, endpoint, _ := strings.Cut(f.URL, "endpoint=")
	backend := func(settings string) string {
		return `{"backend": {"type": "s3", "config": {"bucket": "bucket", "key": "app/state", "region": "us-east-1", "use_path_style": true, ` +
			`"endpoints": {"s3": "` + endpoint + `"}` + settings + `}}}`
	}
	pointer := "keep the journal in " + f.URL + "&state=a, and this one does not. So it cannot tell whether the name \"a\" has a job. " +
		"Apply sends nothing"
	elsewhere, unusable := "WARNING: Name has a record in another journal", "WARNING: Journal not usable"
	for _, test := range []struct {
		name, first, second string // backends
		named, journal      any    // of the first run, and of the second
		want                string
		jobs                int
	}{
		{name: "a forgotten place", first: backend(""), second: backend(""), named: attrs{"url": f.URL + "&state=a"}, want: pointer, jobs: 1},
		{name: "a place that both know", first: backend(""), second: backend(""), named: attrs{"url": f.URL}, journal: attrs{"url": f.URL}, jobs: 1},
		{name: "a fresh checkout", first: backend(""), second: backend(`, "profile": null`), jobs: 1},
		{name: "another key", first: backend(""), second: strings.Replace(backend(""), "app/", "other/", 1), jobs: 2},
		{name: "a place of its own", first: backend(""), second: backend(""), journal: attrs{"url": t.TempDir()}, want: elsewhere, jobs: 1},
		{name: "a damaged file", first: backend(""), second: backend("")[1:], want: unusable, jobs: 1},
		{name: "a setting", first: backend(""), second: backend(`, "not_known": true`), want: unusable, jobs: 1},
		{name: "a setting, and a place of its own", first: backend(""), second: backend(`, "not_known": true`), journal: attrs{"url": t.TempDir()}, jobs: 2},
		{name: "no journal", first: backend(""), second: backend(`, "not_known": true`), journal: attrs{"enabled": false}, jobs: 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			f.Clear()
			s := harness.NewService(t, nil)
			initialized(t, test.first)
			lostRun(t, "first", fakecli.With(s.Attrs(), attrs{"journal": test.named}))
			for key := range f.Objects {
				if test.named == nil && !strings.HasPrefix(key, "app/state.agent-journal/") {
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
			if got := fakecli.Text(diags); !strings.Contains(got, test.want) || strings.Contains(got, elsewhere) && test.want == "" {
				t.Errorf("want %q in:\n%s", test.want, got)
			}
			s.Sent(t, test.jobs, 0)
		})
	}
}

// Local states must not share their names. Commands that send nothing work without a name of the state.
//
// Red without: errNoStateName, each part of its condition.
func TestJournalOfLocalState(t *testing.T) {
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
		{name: "another backend", backend: http},
		{name: "state store", backend: `{"state_store": {"type": "a_b", "config": {"at": "a"}}}`},
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

// A test neither adopts a job of the state, nor one of another test, nor stops because of one, wherever their journal is.
//
// Red without: the run in the scope; no other places for a test.
func TestJournalOfTest(t *testing.T) {
	t.Chdir(t.TempDir())
	s := harness.NewService(t, nil)
	named := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": t.TempDir()}})
	lostRun(t, "production", s.Attrs())
	for i, test := range []struct {
		run    cli.Run
		config attrs
		isTwin bool
	}{
		{run: "test1", config: s.Attrs()}, {run: "test1", config: s.Attrs(), isTwin: true}, {run: "test2", config: s.Attrs()},
		{run: "test3", config: named}, {run: "test4", config: named},
	} {
		process := harness.Process(test.run)
		process.Command = "test"
		c := fakecli.New(t, test.config)
		c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: process}), test.config)
		if diags := c.Run(t.Context(), attrs{"prompt": "write"}); fakecli.Failed(diags) != test.isTwin {
			t.Errorf("%d: %s", i, fakecli.Text(diags))
		}
	}
	lostRun(t, "production2", s.Attrs()) // adopts its own
	s.Sent(t, 5, 0)
}

// The folder has what a last run lost before its state was moved from the disk to a bucket, and before a build kept the
// journal there.
func TestJournalBeforeBuckets(t *testing.T) {
	f := fakes3.New(t)
	_, endpoint, _ := strings.Cut(f.URL, "endpoint=")
	backend := `{"backend": {"type": "s3", "config": {"bucket": "bucket", "key": "k", "region": "us-east-1", "endpoint": "` + endpoint + `", "use_path_style": true}}}`
	for name, first := range map[string]string{"moved state": "", "earlier build": backend} {
		s := harness.NewService(t, nil)
		initialized(t, first)
		config := s.Attrs()
		folder, _ := filepath.Abs(".agent-journal")
		if first != "" {
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			config = fakecli.With(config, attrs{"journal": attrs{"url": folder}})
		}
		lostRun(t, "first", config)
		if err := errors.Join(os.MkdirAll(".terraform", 0o700), os.WriteFile(filepath.Join(".terraform", "terraform.tfstate"), []byte(backend), 0o600)); err != nil {
			t.Fatal(err)
		}
		c := fakecli.New(t, s.Attrs())
		c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: harness.Process("second")}), s.Attrs())
		if got := fakecli.Text(c.Plan(t.Context(), attrs{"prompt": "write"})); !strings.HasPrefix(got, "WARNING: Name has a record in another journal") {
			t.Errorf("%s: %s", name, got)
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

// A token of this run is no part of the scope, nor is how the base URL is spelled.
// The name of a state replaces its backend.
//
// Red without: locating in Backend, CanonicalURL and State in options.
func TestScope(t *testing.T) {
	data := t.TempDir()
	t.Setenv("TF_DATA_DIR", data)
	s := harness.NewService(t, nil)
	folder, base := t.TempDir(), strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	other := strings.Replace(base, "http", "HTTP", 1) + "//"
	for i, try := range []struct{ base, address, query string }{
		{base, "https://a/state", ""}, {other, "https://a/state", ""}, {base, "https://b/state", ""},
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
