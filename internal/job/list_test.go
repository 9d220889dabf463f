// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"errors"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// A query lists the last job of each name, and sends nothing.
func TestList(t *testing.T) {
	one := named("a", "A").with(attrs{"wait": attrs{"enabled": false}})
	run := func(l *life, o object) { l.run("run", step{objects: []object{o}}) }
	for name, test := range map[string]struct {
		before func(l *life)
		want   []string // the status and the name of each job
		says   []string // none: nothing is said
	}{
		"two names, as their keys are": {
			before: func(l *life) {
				run(l, one.with(attrs{"name": "docs"}))
				run(l, one.with(attrs{"name": "app"}).at("app"))
			},
			want: []string{"active app", "active docs"},
		},
		"a destroyed job": {before: func(l *life) { run(l, one); run(l, gone("a")) }, want: []string{"active a"}},
		"an unknown outcome": {
			before: func(l *life) { unanswered(simulator.KindCreate)(l); run(l, one) },
			says:   []string{"Outcome of agent job create unknown", `"a" in project proj_1 at 2`, "request "},
		},
		"a job that cannot be read": {
			before: func(l *life) {
				run(l, one)
				l.s.Inject(simulator.Fault{Kind: simulator.KindGet, Status: 401, Times: -1})
			},
			want: []string{" a"}, says: []string{"Failed to read agent job", "in project proj_1 is listed", "A query sends no prompt."},
		},
		"a response that can still arrive": {
			before: func(l *life) { run(l, one); claims(l, "a") },
			want:   []string{"active a"}, says: []string{"Outcome of another run's request unknown", "Run the query again in a few minutes"},
		},
		"without a journal": {
			before: func(l *life) { l.config["journal"] = attrs{"enabled": false} },
			says:   []string{"Agent jobs not listed"},
		},
		"a journal that cannot be read": {
			before: func(l *life) { l.config["journal"] = attrs{"url": os.Args[0] + stateName} }, // not a folder
			says:   []string{"Journal not usable"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			harness.Bubble(t, harness.Always(simulator.Script{Duration: 1 << 40}), func(t *testing.T, s *harness.Service, _ *fakecli.CLI) {
				l := newLife(t, s, folder)
				test.before(l)
				posts := s.Counts()
				c, _ := l.connect("query", "query")
				listed, diags := c.List(t.Context(), true)
				var got []string
				for i, job := range listed {
					if !regexp.MustCompile("^" + job.JobName + ", " + job.ID + ", last sent a prompt at 2.*$").MatchString(job.Name) {
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
				if plain, _ := c.List(t.Context(), false); !cmp.Equal(listed, plain) || s.Counts() != before {
					t.Errorf("without records, the list is %v, with them %v; requests %+v, then %+v", plain, listed, before, s.Counts())
				}
				s.Sent(t, posts.Create, posts.Message)
			})
		})
	}
}

// claims makes another run, which is still running, send a message to a job.
func claims(l *life, name string) *journal.Call {
	l.t.Helper()
	c := l.journal().Begin(l.t.Context(), journal.Wanted{Project: harness.Project, Name: name, Recipient: l.s.OnlyJob(l.t).ID, Prompt: "B"})
	_, err := c.Look(l.t.Context())
	if err = errors.Join(err, c.Prove(), c.Claim(), c.BeforeBody()); err != nil {
		l.t.Fatal(err)
	}
	return c
}

// It reads once and does not wait.
func TestDataSource(t *testing.T) {
	t.Setenv("AGENT_PROJECT_ID", "")
	script := simulator.Script{Status: "active", Extra: map[string]any{"prLink": "javascript:alert(1)"}}
	harness.Bubble(t, harness.Always(script), func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
		id := s.Create(harness.Project, "write").ID
		if state, _ := c.Data(t.Context(), attrs{"id": id}); c.Attribute(state, "project_id") != harness.Project {
			t.Errorf("the default project is not in %s", state)
		}
		c.ConnectTo(t.Context(), provider.New("test", provider.Options{Dial: s.Wire.Dial}), fakecli.With(s.Attrs(), attrs{"project_id": nil}))
		_, diags := c.Data(t.Context(), attrs{"id": id})
		fakecli.WantPath(t, diags, "project_id")
		state, diags := c.Data(t.Context(), attrs{"id": id, "project_id": harness.Project})
		harness.Contains(t, fakecli.Text(diags), "WARNING: Invalid pull request link", id)
		if status := c.Attribute(state, "status"); status != "active" || fakecli.Failed(diags) {
			t.Errorf("status %v: %s", status, fakecli.Text(diags))
		}
		s.Inject(simulator.Fault{Kind: simulator.KindGet, Times: -1, Status: 503})
		_, diags = c.Data(t.Context(), attrs{"id": id, "project_id": harness.Project})
		harness.Contains(t, fakecli.Text(diags), "ERROR: Failed to read agent job", "503 Service Unavailable")
		s.ClearFaults()
		s.Forget(id)
		_, diags = c.Data(t.Context(), attrs{"id": id, "project_id": harness.Project})
		harness.Contains(t, fakecli.Text(diags), "ERROR: Agent job not found", "job "+id+" in project proj_1.", "project_id")
	})
}
