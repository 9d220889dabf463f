// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// A query lists what no plan has read in the state, sends nothing, and leads nobody to
// import what the state has. Which jobs the journal has: TestStores_unseen.
func TestList(t *testing.T) {
	const mayBeInState = "Listed agent jobs may be in the state"
	type world struct {
		*fakecli.CLI
		s              *harness.Service
		folder         string // of the journal
		config, wanted attrs
	}
	run := func(w *world, name cli.Run) { apply(t, w.CLI, name, w.config, w.wanted) }
	lost := simulator.Fault{Kind: simulator.KindCreate, Status: 503}
	imports := func(w *world, runs ...cli.Run) { // and edits the prompt
		run(w, "first")
		w.Forget()
		id := w.s.OnlyJob(t).ID
		w.ImportState(t.Context(), harness.Project+"/"+id)
		w.wanted["prompt"] = "B"
		for _, name := range runs {
			process := startRun(w.CLI, name, w.config)
			_, err := w.Server.UpgradeResourceState(t.Context(), &tfprotov6.UpgradeResourceStateRequest{
				TypeName: "agent_job", RawState: &tfprotov6.RawState{JSON: []byte(`{"id":"` + id + `"}`)},
			})
			if diags := w.Run(t.Context(), w.wanted); fakecli.Failed(diags) || err != nil {
				t.Error(err, fakecli.Text(diags))
			}
			process.Drain(t.Context())
		}
	}
	for name, test := range map[string]struct {
		before func(w *world)
		want   []string // the status and the first run of each job
		says   []string // none: nothing is said
	}{
		"straight after a clean apply": {
			before: func(w *world) { run(w, "first") },
			want:   []string{"active first"}, says: []string{mayBeInState, "read in the state: 1.", "run a plan"},
		},
		"a job with a name": {
			before: func(w *world) { w.wanted["name"] = "docs"; run(w, "first") },
			want:   []string{"active docs, first"}, says: []string{mayBeInState},
		},
		"after the next plan": {before: func(w *world) { run(w, "first"); run(w, "second") }},
		"an unknown outcome": {
			before: func(w *world) { w.s.Inject(lost); run(w, "first") },
			says:   []string{"Outcome of agent job create unknown", "in project proj_1 at 2", "journal { forget = ["},
		},
		"a job that cannot be read": {
			before: func(w *world) {
				run(w, "first")
				w.s.Inject(simulator.Fault{Kind: simulator.KindGet, Status: 404, Times: -1})
			},
			want: []string{" first"}, says: []string{"Failed to read agent job", "in project proj_1 is listed", "delete "},
		},
		"imported with another prompt, whose state may not be stored yet": {
			before: func(w *world) { imports(w, "second") },
			want:   []string{"active first"}, says: []string{mayBeInState},
		},
		"imported with another prompt": {before: func(w *world) { imports(w, "second", "third") }},
		"a response that can still arrive": {
			before: func(w *world) {
				w.s.Inject(lost)
				run(w, "first")
				files, _ := filepath.Glob(filepath.Join(w.folder, "*", "*.json"))
				text, err := os.ReadFile(strings.Join(files, ""))
				if err = errors.Join(err, os.WriteFile(files[0], bytes.Replace(text, []byte(`"unknown"`), []byte(`"pending","deadline":"9999-01-01T00:00:00Z"`), 1), 0o600)); err != nil {
					t.Fatal(err)
				}
			},
			says: []string{"Outcome of an earlier request unknown", "Run it again in a few minutes"},
		},
		"without a journal": {
			before: func(w *world) { w.config["journal"] = attrs{"enabled": false} },
			says:   []string{"Agent jobs not listed"},
		},
		"a journal that cannot be read": {
			before: func(w *world) { w.config["journal"] = attrs{"url": os.Args[0]} }, // not a folder
			says:   []string{"Journal not usable"},
		},
		"an unknown configuration": {
			before: func(w *world) { w.config["admin_key"] = unknown{} },
			says:   []string{"Agent provider not configured"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, folder := harness.NewService(t, harness.Always(simulator.Script{Duration: 1 << 40})), t.TempDir()
			config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": folder}})
			w := &world{fakecli.New(t, config), s, folder, config, attrs{"prompt": "A", "wait": attrs{"enabled": false}}}
			test.before(w)
			posts := s.Counts()
			startRun(w.CLI, "query", w.config)
			listed, diags := w.List(t.Context(), true)
			var got []string
			for i, job := range listed {
				started := regexp.MustCompile("^(" + job.JobName + "(?:, )?)" + job.ID + ", started at 2.* by run ")
				got = append(got, job.Status+" "+started.ReplaceAllString(job.Name, "$1"))
				listed[i].Status, listed[i].JobName = "", ""
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
			text := fakecli.Text(diags)
			harness.Contains(t, text, test.says...)
			if len(test.says) == 0 && text != "" {
				t.Error(text)
			}
			before := s.Counts()
			if plain, _ := w.List(t.Context(), false); !cmp.Equal(listed, plain) || s.Counts() != before {
				t.Errorf("without records, the list is %v, with them %v; requests %+v, then %+v", plain, listed, before, s.Counts())
			}
			s.Sent(t, posts.Create, posts.Message)
		})
	}
}
