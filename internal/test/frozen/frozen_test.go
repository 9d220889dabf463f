// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package frozen reads what earlier versions have written, and compares their schema with
// today's. CONTRIBUTING.md says when to freeze another version.
package frozen

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

type attrs = fakecli.Attrs

// versions are the folders of all that was frozen.
func versions(t *testing.T) []string {
	found, err := filepath.Glob("testdata/*")
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	return found
}

// service has every job, as records says or else completed (and active once after a
// POST, so that nothing waits for a later end), and counts the POSTs.
type service struct {
	records map[string]map[string]any
	posts   atomic.Int64
	active  atomic.Bool
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := path.Base(strings.TrimSuffix(r.URL.Path, "/message"))
	record := map[string]any{"id": id, "status": "completed"}
	switch {
	case r.Method == http.MethodPost:
		s.posts.Add(1)
		s.active.Store(true)
		if id == "job" {
			record["id"] = "job_new"
		}
	case s.active.Swap(false):
		record["status"] = "active"
	case s.records[id] != nil:
		record = s.records[id]
	}
	_ = json.NewEncoder(w).Encode(record)
}

// start returns a CLI whose provider reaches the service on pipes, at an address that never
// changes, because the records of a journal are for one address.
func start(t *testing.T, s *service, process *cli.Process, more attrs) *fakecli.CLI {
	t.Helper()
	wire := faultserver.New(t, s, faultserver.Options{InMemory: true})
	c := &fakecli.CLI{T: t}
	c.ConnectTo(t.Context(), provider.New("test", provider.Options{Dial: wire.Dial, Process: process}), fakecli.With(attrs{
		"base_url": wire.URL, "admin_key": harness.CanaryKey, "project_id": harness.Project,
		"poll": attrs{"min_interval": "10ms"},
	}, more))
	c.Forget()
	return c
}

func summaries(diags []*tfprotov6.Diagnostic) (all []string) {
	for _, d := range diags {
		all = append(all, d.Summary)
	}
	return all
}

// A refresh and a plan of each state that the real CLI has stored.
func TestStates(t *testing.T) {
	t.Parallel()
	const nothing, changes, replaces = "nothing", "changes", "replaces"
	type want struct {
		config     attrs
		plan, says string
	}
	wants := map[string]want{
		"completed": {
			attrs{"prompt": "Write completed", "triggers": attrs{"release": "1"}, "wait": attrs{"on_failure": "error"}, "timeouts": attrs{"create": "10m"}},
			nothing, "",
		},
		"active":      {attrs{"prompt": "Write active [simulate: active]", "wait": attrs{"enabled": false}}, nothing, ""},
		"failed":      {attrs{"prompt": "Write failed [simulate: 0s, failed]", "wait": attrs{"on_failure": "warn"}}, nothing, "Agent job failed"},
		"archived":    {attrs{"prompt": "Write archived [simulate: 0s, archived]"}, nothing, ""},
		"unfinished":  {attrs{"prompt": "Write unfinished [simulate: active]", "timeouts": attrs{"create": "1s"}}, changes, "Unfinished agent job"},
		"tainted":     {attrs{"prompt": "Write tainted [simulate: active]", "wait": attrs{}, "timeouts": attrs{"create": "1s"}}, replaces, ""},
		"write_only":  {attrs{"prompt_wo": "Write write_only"}, nothing, ""},
		"messaged":    {attrs{"prompt": "Write messaged again"}, nothing, ""},
		"unconfirmed": {attrs{"prompt": "Write LOST"}, nothing, "Message to agent job unconfirmed"},
		"imported":    {attrs{"prompt": "Any text"}, changes, "Prompt stored without sending it"},
		"recorded":    {attrs{"prompt": "Any text"}, nothing, ""},
	}
	for _, version := range versions(t) {
		var state struct {
			Resources []struct {
				Name      string
				Instances []struct {
					Status     string
					Attributes json.RawMessage
					Private    []byte
				}
			}
		}
		text, err := os.ReadFile(filepath.Join(version, "state.json"))
		if err = errors.Join(err, json.Unmarshal(text, &state)); err != nil || len(state.Resources) != len(wants) {
			t.Fatalf("%s has %d resources, want %d: %v", version, len(state.Resources), len(wants), err)
		}
		for _, r := range state.Resources {
			t.Run(filepath.Base(version)+" "+r.Name, func(t *testing.T) {
				t.Parallel()
				want, instance := wants[r.Name], r.Instances[0]
				var had map[string]any
				if err := json.Unmarshal(instance.Attributes, &had); err != nil {
					t.Fatal(err)
				}
				s := &service{records: map[string]map[string]any{had["id"].(string): {
					"id": had["id"], "status": had["status"], "prLink": had["pr_link"], "createdAt": had["created_at"],
					"archivedAt": had["archived_at"], "model": had["model"], "source": had["source"],
				}}}
				c := start(t, s, nil, nil)
				upgraded, err := c.Server.UpgradeResourceState(t.Context(), &tfprotov6.UpgradeResourceStateRequest{
					TypeName: "agent_job", RawState: &tfprotov6.RawState{JSON: instance.Attributes},
				})
				if err != nil || len(upgraded.Diagnostics) > 0 {
					t.Fatal(err, fakecli.Text(upgraded.Diagnostics))
				}
				before := c.Decode(upgraded.UpgradedState)
				had["later"] = map[string]any{"version": 1} // after a downgrade: an attribute that this version does not know
				later, _ := json.Marshal(had)
				upgraded, err = c.Server.UpgradeResourceState(t.Context(), &tfprotov6.UpgradeResourceStateRequest{
					TypeName: "agent_job", RawState: &tfprotov6.RawState{JSON: later},
				})
				if err != nil || len(upgraded.Diagnostics) > 0 || !c.Decode(upgraded.UpgradedState).Equal(before) {
					t.Errorf("with an attribute of a later version: %v, %s", err, fakecli.Text(upgraded.Diagnostics))
				}
				c.State, c.Private, c.Tainted = before, instance.Private, instance.Status == "tainted"
				if diags := c.Refresh(t.Context()); len(diags) > 0 || !c.State.Equal(before) {
					t.Errorf("the refresh has changed the state: %s%s", c.State, fakecli.Text(diags))
				}
				diags := c.Plan(t.Context(), fakecli.With(attrs{"name": r.Name}, want.config))
				got := map[bool]string{true: nothing, false: changes}[c.Empty()]
				if c.Replace {
					got = replaces
				}
				if says := strings.Join(summaries(diags), "; "); says != want.says || got != want.plan || s.posts.Load() != 0 {
					t.Errorf("the plan %s and says %q, want %+v, after %d POSTs", got, says, want, s.posts.Load())
				}
			})
		}
	}
}

// A record of each kind, in a folder and in a bucket, as the next run after a killed one finds it.
func TestRecords(t *testing.T) {
	bucket := fakes3.New(t)
	for name, test := range map[string]struct {
		before, prompt string // before: of the job that the state has
		says           []string
	}{
		"created":  {"", "Write", []string{"Agent job of an earlier run will be adopted", "Agent job of an earlier run adopted"}},
		"messaged": {"Write", "Write more", []string{"Message of an earlier run counts as sent", "Message of an earlier run counts as sent"}},
		"unknown":  {"", "Write", []string{"Outcome of agent job create unknown", "Outcome of agent job create unknown"}},
		"released": {"", "Write", nil},
	} {
		for _, version := range versions(t) {
			for place, url := range restore(t, bucket, filepath.Join(version, "journal", name), func(text string) string { return text }) {
				says, posts := next(t, url, test.before, test.prompt)
				if diff := cmp.Diff(test.says, says); diff != "" || (posts != 0) != (test.says == nil) {
					t.Errorf("%s %s in the %s: %d POSTs\n%s", version, name, place, posts, diff)
				}
			}
		}
	}
}

// restore puts a frozen record, changed, in a folder and in a bucket, and returns their URLs.
func restore(t *testing.T, bucket *fakes3.Server, frozen string, change func(text string) string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(frozen, "*", "*", "1.json"))
	if len(files) != 1 || err != nil {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	record, err := filepath.Rel(frozen, filepath.Dir(files[0]))
	if err != nil {
		t.Fatal(err)
	}
	folder, changed := t.TempDir(), []byte(change(string(text)))
	path := filepath.Join(folder, record, "1.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, changed, 0o600)); err != nil {
		t.Fatal(err)
	}
	bucket.Clear()
	bucket.Objects["a/prefix/"+filepath.ToSlash(record)+".json"] = changed
	return map[string]string{"folder": folder + "?state=frozen", "bucket": bucket.URL + "&state=frozen"}
}

// next is the next run with a journal. What the state has of the job, if anything, is without it.
func next(t *testing.T, url, before, prompt string) (says []string, posts int64) {
	t.Helper()
	s := new(service)
	c := start(t, s, nil, nil)
	if before != "" {
		c.Run(t.Context(), attrs{"prompt": before})
		s.posts.Store(0)
	}
	had := c.Instance
	c.Server = start(t, s, harness.Process("next"), attrs{"journal": attrs{"url": url}}).Server
	if before != "" {
		c.Load(t.Context(), had)
	}
	diags := c.Run(t.Context(), attrs{"prompt": prompt, "wait": attrs{"enabled": false}})
	return summaries(diags), s.posts.Load()
}

// After a downgrade: what a later version has written is never sent again. CONTRIBUTING.md says what a later version may therefore change.
//
// Red without: the format in decode.
func TestLaterRecords(t *testing.T) {
	bucket := fakes3.New(t)
	for name, test := range map[string]struct {
		old, later string // in the text of a record
		says       []string
	}{
		"another format": {`"format":1`, `"format":2`, []string{"Journal not usable", "Agent job not created"}},
		"another type":   {`"project":"proj_1"`, `"project":["proj_1"]`, []string{"Journal not usable", "Agent job not created"}},
		"another member": {`{`, `{"priority":{"level":1},`, []string{
			"Agent job of an earlier run will be adopted", "Agent job of an earlier run adopted"}},
	} {
		later := func(text string) string { return strings.Replace(text, test.old, test.later, 1) }
		for place, url := range restore(t, bucket, filepath.Join("testdata", latest, "journal", "created"), later) {
			says, posts := next(t, url, "", "Write")
			if diff := cmp.Diff(test.says, says); diff != "" || posts != 0 {
				t.Errorf("%s, in the %s: %d POSTs\n%s", name, place, posts, diff)
			}
		}
	}
}
