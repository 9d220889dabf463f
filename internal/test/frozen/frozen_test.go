// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package frozen reads what earlier versions have written, and compares their schema with
// today's. CONTRIBUTING.md says when to freeze another version.
package frozen

import (
	"context"
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
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

func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
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

// start returns a CLI whose provider reaches the service at an address that never changes,
// because entries of a journal are for one address.
func start(t *testing.T, s *service, process *cli.Process, more attrs) *fakecli.CLI {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}
	c := &fakecli.CLI{T: t}
	c.ConnectTo(t.Context(), provider.New("test", provider.Options{Dial: dial, Process: process}), fakecli.With(attrs{
		"base_url": "http://127.0.0.1:1", "admin_key": harness.CanaryKey, "project_id": harness.Project,
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
		config attrs
		plan   string
		says   []string
	}
	wants := map[string]want{
		"completed": {attrs{"prompt": "Write completed", "triggers": attrs{"release": "1"}, "wait": attrs{"on_failure": "error"}, "timeouts": attrs{"create": "10m"}}, nothing, nil},
		"active":    {attrs{"prompt": "Write active [simulate: active]", "wait": attrs{"enabled": false}}, nothing, nil},
		"failed":    {attrs{"prompt": "Write failed [simulate: 0s, failed]", "wait": attrs{"on_failure": "warn"}}, nothing, []string{"Agent job failed"}},
		"archived":  {attrs{"prompt": "Write archived [simulate: 0s, archived]"}, nothing, nil},
		"unfinished": {
			attrs{"prompt": "Write unfinished [simulate: active]", "timeouts": attrs{"create": "1s"}}, changes, []string{"Unfinished agent job"},
		},
		"tainted": {
			attrs{"prompt": "Write tainted [simulate: active]", "wait": attrs{}, "timeouts": attrs{"create": "1s"}}, replaces, nil,
		},
		"write_only":  {attrs{"prompt_wo": "Write write_only"}, nothing, nil},
		"messaged":    {attrs{"prompt": "Write messaged again"}, nothing, nil},
		"unconfirmed": {attrs{"prompt": "Write LOST"}, nothing, []string{"Message to agent job unconfirmed"}},
		"imported":    {attrs{"prompt": "Any text"}, changes, []string{"Prompt recorded without sending it"}},
		"recorded":    {attrs{"prompt": "Any text"}, nothing, nil},
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
		read(t, filepath.Join(version, "state.json"), &state)
		if len(state.Resources) != len(wants) {
			t.Errorf("%s has %d resources, want %d", version, len(state.Resources), len(wants))
		}
		for _, r := range state.Resources {
			t.Run(filepath.Base(version)+" "+r.Name, func(t *testing.T) {
				t.Parallel()
				want, instance := wants[r.Name], r.Instances[0]
				var had struct {
					ID, Status string
					PRLink     *string        `json:"pr_link"`
					CreatedAt  *string        `json:"created_at"`
					ArchivedAt *string        `json:"archived_at"`
					Model      *string        `json:"model"`
					Source     map[string]any `json:"source"`
				}
				if err := json.Unmarshal(instance.Attributes, &had); err != nil {
					t.Fatal(err)
				}
				s := &service{records: map[string]map[string]any{had.ID: {
					"id": had.ID, "status": had.Status, "prLink": had.PRLink, "createdAt": had.CreatedAt, "archivedAt": had.ArchivedAt,
					"model": had.Model, "source": had.Source,
				}}}
				c := start(t, s, nil, nil)
				upgraded, err := c.Server.UpgradeResourceState(t.Context(), &tfprotov6.UpgradeResourceStateRequest{
					TypeName: "agent_job", RawState: &tfprotov6.RawState{JSON: instance.Attributes},
				})
				if err != nil || len(upgraded.Diagnostics) > 0 {
					t.Fatal(err, fakecli.Text(upgraded.Diagnostics))
				}
				c.State, c.Private, c.Tainted = c.Decode(upgraded.UpgradedState), instance.Private, instance.Status == "tainted"
				if diags := c.Refresh(t.Context()); len(diags) > 0 || !c.State.Equal(c.Decode(upgraded.UpgradedState)) {
					t.Errorf("the refresh has changed the state: %s%s", c.State, fakecli.Text(diags))
				}
				diags := c.Plan(t.Context(), want.config)
				got := map[bool]string{true: nothing, false: changes}[c.Empty()]
				if c.Replace {
					got = replaces
				}
				if diff := cmp.Diff(want.says, summaries(diags)); diff != "" || got != want.plan || s.posts.Load() != 0 {
					t.Errorf("the plan %s, want %s, after %d POSTs:\n%s", got, want.plan, s.posts.Load(), diff)
				}
			})
		}
	}
}

// The entries of a killed run, in a folder and in a bucket.
func TestEntries(t *testing.T) {
	bucket := fakes3.New(t)
	for name, test := range map[string]struct {
		messaged bool
		says     []string
	}{
		"created":  {false, []string{"Agent job of an earlier run will be taken over", "Agent job of an earlier run taken over"}},
		"messaged": {true, []string{"Message of an earlier run will be taken over", "Message of an earlier run taken over"}},
		"unknown":  {false, []string{"Outcome of an earlier request unknown", "Outcome of agent job create unknown"}},
	} {
		for _, version := range versions(t) {
			frozen := os.DirFS(filepath.Join(version, "journal", name))
			folder := filepath.Join(t.TempDir(), "journal")
			if err := os.CopyFS(folder, frozen); err != nil {
				t.Fatal(err)
			}
			bucket.Clear()
			files, err := fs.Glob(frozen, "*/*.json")
			if len(files) != 1 || err != nil {
				t.Fatal(files, err)
			}
			for _, file := range files {
				text, err := fs.ReadFile(frozen, file)
				if err != nil {
					t.Fatal(err)
				}
				bucket.Objects["a/prefix/"+file] = text
			}
			for _, url := range []string{folder, bucket.URL} {
				s := new(service)
				c := start(t, s, nil, nil)
				if test.messaged {
					c.Run(t.Context(), attrs{"prompt": "Write"})
					s.posts.Store(0)
				}
				c.Server = start(t, s, harness.Process("next"), attrs{"journal": attrs{"url": url}}).Server
				prompt := map[bool]string{false: "Write", true: "Write more"}[test.messaged]
				diags := c.Run(t.Context(), attrs{"prompt": prompt, "wait": attrs{"enabled": false}})
				if diff := cmp.Diff(test.says, summaries(diags)); diff != "" || s.posts.Load() != 0 {
					t.Errorf("%s %s in %s: %d POSTs\n%s", version, name, url, s.posts.Load(), diff)
				}
			}
		}
	}
}
