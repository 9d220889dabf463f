// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// A query lists the last job of each name, and sends nothing.
func TestList(t *testing.T) {
	type world struct {
		*fakecli.CLI
		s              *harness.Service
		folder         string // of the journal
		config, wanted attrs
	}
	run := func(w *world, name cli.Run) { apply(t, w.CLI, name, w.config, w.wanted) }
	lost := simulator.Fault{Kind: simulator.KindCreate, Status: 503}
	for name, test := range map[string]struct {
		before func(w *world)
		want   []string // the status and the name of each job
		says   []string // none: nothing is said
	}{
		"a job of the state": {before: func(w *world) { run(w, "first") }, want: []string{"active a"}},
		"two names, as their keys are": {
			before: func(w *world) {
				w.wanted["name"] = "docs"
				run(w, "first")
				w.Forget()
				w.wanted["name"] = "app"
				run(w, "second")
			},
			want: []string{"active app", "active docs"},
		},
		"a destroyed job": {before: func(w *world) { run(w, "first"); w.Destroy(t.Context()) }, want: []string{"active a"}},
		"a job with other triggers since": {
			before: func(w *world) {
				run(w, "first")
				w.Forget()
				w.wanted["triggers"] = attrs{"v": "2"}
				run(w, "second")
			},
			want: []string{"active a"},
		},
		"an imported job": {
			before: func(w *world) { w.ImportState(t.Context(), harness.Project+"/"+ended(w.s)); run(w, "second") },
			want:   []string{"completed a"},
		},
		"an unknown outcome": {
			before: func(w *world) { w.s.Inject(lost); run(w, "first") },
			says:   []string{"Outcome of agent job create unknown", `"a" in project proj_1 at 2`, "request "},
		},
		"a job that cannot be read": {
			before: func(w *world) {
				run(w, "first")
				w.s.Inject(simulator.Fault{Kind: simulator.KindGet, Status: 401, Times: -1})
			},
			want: []string{" a"}, says: []string{"Failed to read agent job", "in project proj_1 is listed", "A query sends no prompt."},
		},
		"a response that can still arrive": {
			before: func(w *world) { run(w, "first"); pretendClaim(t, w.folder) },
			want:   []string{"active a"}, says: []string{"Outcome of another run's request unknown", "Run it again in a few minutes"},
		},
		"without a journal": {
			before: func(w *world) { w.config["journal"] = attrs{"enabled": false} },
			says:   []string{"Agent jobs not listed"},
		},
		"a journal that cannot be read": {
			before: func(w *world) { w.config["journal"] = attrs{"url": os.Args[0] + stateName} }, // not a folder
			says:   []string{"Journal not usable"},
		},
		"an unknown configuration": {
			before: func(w *world) { w.config["admin_key"] = unknown{} },
			says:   []string{"Agent provider not configured"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, folder := harness.NewService(t, harness.Always(simulator.Script{Duration: 1 << 40})), t.TempDir()
			config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": folder + stateName}})
			w := &world{fakecli.New(t, config), s, folder, config, attrs{"prompt": "A", "wait": attrs{"enabled": false}}}
			startRun(w.CLI, "zeroth", config)
			test.before(w)
			posts := s.Counts()
			startRun(w.CLI, "query", w.config)
			listed, diags := w.List(t.Context(), true)
			var got []string
			for i, job := range listed {
				if !regexp.MustCompile("^" + job.JobName + ", " + job.ID + ", started at 2.*$").MatchString(job.Name) {
					t.Error(job.Name)
				}
				got = append(got, job.Status+" "+job.JobName)
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

// pretendClaim makes a run of another machine send a message to the one job of a journal.
func pretendClaim(t *testing.T, folder string) {
	t.Helper()
	var file string
	var record map[string]any
	for i := 1; i < 10; i++ { // the last version
		files, _ := filepath.Glob(filepath.Join(folder, "*", "a-*", strconv.Itoa(i)+".json"))
		if len(files) > 0 {
			file = files[0]
		}
	}
	text, err := os.ReadFile(file)
	if err = errors.Join(err, json.Unmarshal(text, &record)); err != nil {
		t.Fatal(err)
	}
	claim := maps.Clone(record["last"].(map[string]any))
	claim["deadline"], claim["sender"], claim["job"], claim["message"] = "9999-01-01T00:00:00Z", map[string]any{"machine": "another"}, record["job"], true
	record["claim"] = claim
	text, _ = json.Marshal(record)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
