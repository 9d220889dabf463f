// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-version"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/querycheck"
	"github.com/hashicorp/terraform-plugin-testing/querycheck/queryfilter"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/plugin"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// A query lists what no plan has read in the state, sends nothing, and leads nobody to
// import what the state has.
func TestList(t *testing.T) {
	const mayBeInState = "Listed agent jobs may be in the state"
	type world struct {
		*fakecli.CLI
		s           *harness.Service
		config, job attrs
	}
	run := func(w *world, name cli.Run, prompt string) {
		w.job["prompt"] = prompt
		apply(t, w.CLI, name, w.config, w.job)
	}
	imports := func(w *world, runs ...cli.Run) { // and edits the prompt
		run(w, "first", "A")
		w.Forget()
		id := w.s.OnlyJob(t).ID
		w.ImportState(t.Context(), harness.Project+"/"+id)
		w.job["prompt"] = "B"
		for _, name := range runs {
			w.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: harness.Process(name)}), w.config)
			_, err := w.Server.UpgradeResourceState(t.Context(), &tfprotov6.UpgradeResourceStateRequest{
				TypeName: "agent_job", RawState: &tfprotov6.RawState{JSON: []byte(`{"id":"` + id + `"}`)},
			})
			if diags := w.Run(t.Context(), w.job); fakecli.Failed(diags) || err != nil {
				t.Error(err, fakecli.Text(diags))
			}
		}
	}
	tests := map[string]struct {
		before func(w *world)
		want   []string // the status and the first run of each job
		says   []string
		never  string
	}{
		"nothing": {before: func(*world) {}, never: "Agent"},
		"straight after a clean apply": {
			before: func(w *world) { run(w, "first", "A") },
			want:   []string{"active first"}, says: []string{mayBeInState, "run a plan"},
		},
		"after the next plan": {
			before: func(w *world) { run(w, "first", "A"); run(w, "second", "A") },
			never:  mayBeInState,
		},
		"a lost state, and the prompt was edited": {
			before: func(w *world) { run(w, "first", "A"); w.Forget(); run(w, "second", "B"); run(w, "third", "B") },
			want:   []string{"active first"}, says: []string{mayBeInState},
		},
		"taken over, and lost again": {
			before: func(w *world) { run(w, "first", "A"); w.Forget(); run(w, "second", "A"); w.Forget() },
			want:   []string{"active first"}, says: []string{mayBeInState, "read in the state: 1."},
		},
		"an unknown outcome": {
			before: func(w *world) {
				w.s.Inject(simulator.Fault{Kind: simulator.KindCreate, Status: 503})
				run(w, "first", "A")
			},
			says:  []string{"Outcome of agent job create unknown", "in project proj_1 at 2", "journal { forget = ["},
			never: mayBeInState,
		},
		"a job that cannot be read": {
			before: func(w *world) {
				run(w, "first", "A")
				w.s.Inject(simulator.Fault{Kind: simulator.KindGet, Status: 404})
			},
			want: []string{" first"}, says: []string{"Failed to read agent job", "delete "},
		},
		"imported with another prompt, whose state may not be stored yet": {
			before: func(w *world) { imports(w, "second") },
			want:   []string{"active first"}, says: []string{mayBeInState},
		},
		"imported with another prompt": {
			before: func(w *world) { imports(w, "second", "third") },
			never:  mayBeInState,
		},
		"without a journal": {
			before: func(w *world) { w.config["journal"] = attrs{"enabled": false} },
			says:   []string{"Agent jobs not listed"},
		},
		"a response that can still arrive": {
			before: func(w *world) {
				w.s.Inject(simulator.Fault{Kind: simulator.KindCreate, Status: 503})
				run(w, "first", "A")
				files, _ := filepath.Glob(w.config["journal"].(attrs)["url"].(string) + "/*/*.json")
				text, err := os.ReadFile(files[0])
				if err = errors.Join(err, os.WriteFile(files[0], []byte(strings.Replace(string(text), "{", `{"wait":60000,`, 1)), 0o600)); err != nil {
					t.Fatal(err)
				}
			},
			says:  []string{"Outcome of an earlier request unknown", "Run it again in a few minutes"},
			never: "forget", // nobody must give up what may be accepted
		},
		"a journal that cannot be read": {
			before: func(w *world) {
				bucket := fakes3.New(t)
				bucket.SetHook(func(*http.Request, func()) int { return http.StatusForbidden })
				w.config["journal"] = attrs{"url": bucket.URL}
			},
			says: []string{"Journal not usable"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := harness.NewService(t, harness.Always(simulator.Script{Duration: 1 << 40}))
			config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": t.TempDir()}})
			w := &world{fakecli.New(t, config), s, config, attrs{"wait": attrs{"enabled": false}}}
			test.before(w)
			posts := s.Counts()
			w.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: harness.Process("query")}), w.config)
			for _, include := range []bool{true, false} {
				listed, diags := w.List(t.Context(), include)
				var got []string
				for _, job := range listed {
					if !strings.HasPrefix(job.Name, job.ID+", started at 2") {
						t.Error(job)
					}
					_, first, _ := strings.Cut(job.Name, " by run ")
					if include {
						first = job.Status + " " + first
					}
					got = append(got, first)
				}
				want := test.want
				if !include {
					want = nil
					for _, job := range test.want {
						_, run, _ := strings.Cut(job, " ")
						want = append(want, run)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("listed, with records: %t (-want +got):\n%s", include, diff)
				}
				text := fakecli.Text(diags)
				if include {
					harness.Contains(t, text, test.says...)
				}
				if test.never != "" && strings.Contains(text, test.never) {
					t.Error(text)
				}
			}
			s.Sent(t, posts.Create, posts.Message)
		})
	}
}

// A query of a provider whose configuration is not known fails.
func TestList_unconfigured(t *testing.T) {
	_, diags := fakecli.Unconfigured(t).List(t.Context(), false)
	harness.Contains(t, fakecli.Text(diags), "Agent provider not configured")
}

// The real CLI lists the job of a clean apply until a plan of another run has read it in the state.
func TestAccList(t *testing.T) {
	s := harness.NewService(t, nil)
	run := new(atomic.Int64) // each step is another run
	factories := map[string]func() (tfprotov6.ProviderServer, error){"agent": func() (tfprotov6.ProviderServer, error) {
		process := harness.Process(cli.Run(fmt.Sprint("run", run.Load())))
		return plugin.NewServer(t.Context(), provider.New("test", provider.Options{Process: process})), nil
	}}
	t.Setenv("AGENT_JOURNAL_URL", t.TempDir())
	job := s.Config(jobConfig("A"))
	const query = `
list "agent_job" "lost" {
  provider         = agent
  include_resource = true
}
`
	next := func() { run.Add(1) }
	listed := func(jobs int) resource.TestStep {
		checks := []querycheck.QueryResultCheck{querycheck.ExpectLength("agent_job.lost", jobs)}
		if jobs > 0 {
			named := queryfilter.ByDisplayName(knownvalue.StringRegexp(regexp.MustCompile("^job_.* by run run0$")))
			checks = append(checks, querycheck.ExpectResourceKnownValues("agent_job.lost", named, []querycheck.KnownValueCheck{
				{Path: tfjsonpath.New("status"), KnownValue: knownvalue.StringExact("completed")},
				{Path: tfjsonpath.New("project_id"), KnownValue: knownvalue.StringExact(harness.Project)},
			}))
		}
		return resource.TestStep{PreConfig: next, Query: true, Config: query, QueryResultChecks: checks}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(version.Must(version.NewVersion("1.14.0")))}, // terraform query
		Steps: []resource.TestStep{
			{Config: job},
			listed(1),
			{PreConfig: next, Config: job, PlanOnly: true},
			listed(0),
		},
	})
	s.Sent(t, 1, 0)
}
