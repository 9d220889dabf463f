// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflogtest"
	"github.com/hashicorp/terraform-plugin-log/tfsdklogtest"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// Red without: the defaults of poll and timeouts, and the parts of the User-Agent.
func TestDefaults_I06(t *testing.T) {
	script := func(prompt string, _ int) simulator.Script {
		return simulator.Script{Duration: map[string]time.Duration{"long": 24 * time.Hour}[prompt]}
	}
	harness.Bubble(t, script, func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
		config := fakecli.With(s.Attrs(), attrs{"poll": nil, "max_new_jobs": 1000})
		c.ConnectTo(t.Context(), provider.New("test", provider.Options{Dial: s.Wire.Dial}), config)
		ctx, long, expired := t.Context(), attrs{"prompt": "long"}, " (1h0m0s) expired."
		harness.Contains(t, fakecli.Text(c.Run(ctx, long)), "The configured timeouts.create"+expired, "resumes waiting without sending anything.")
		got := s.Requests() // the create comes first
		for i, want := range map[int]time.Duration{1: 800 * time.Millisecond, 2: 800 * time.Millisecond, len(got) - 1: 10 * time.Second} {
			if pause := got[i].Time.Sub(got[i-1].Time); (pause - want).Abs() > want/4 {
				t.Errorf("a pause of %s before poll %d, want about %s", pause, i, want)
			}
		}
		if agent := got[0].Header.Get("User-Agent"); agent != "terraform-provider-agent/test (+terraform 1.16.0)" {
			t.Errorf("User-Agent: %q", agent)
		}

		c.Tainted = false // as after terraform untaint
		harness.Contains(t, fakecli.Text(c.Run(ctx, long)), "The configured timeouts.update"+expired)
		progress, diags := c.Invoke(ctx, "agent_start_job", long)
		harness.Contains(t, fakecli.Text(diags), "The configured timeouts.invoke"+expired)
		if n := len(progress) - 1; n < 180 || n > 360 { // each ten seconds, or at the next poll after them
			t.Errorf("%d lines of progress in an hour", n)
		}

		start := time.Now()
		var all sync.WaitGroup
		for range 130 { // thirty polls more than may go at once
			all.Go(func() {
				if _, diags := c.Invoke(ctx, "agent_start_job", attrs{"prompt": "soon"}); len(diags) > 0 {
					t.Error(fakecli.Text(diags))
				}
			})
		}
		all.Wait()
		if took := time.Since(start); took < 1840*time.Millisecond || took > 2160*time.Millisecond { // after the first pause
			t.Errorf("130 polls took %s", took)
		}
	})
}

// Ctrl-C in the wait of a create is no error of ours, so it does not taint: the next apply updates, and resumes the wait. Red without:
// the case of context.Canceled in cutShort.
func TestInterruptedCreate_isNotTainted(t *testing.T) {
	harness.Bubble(t, byPrompt, func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		diags := c.Run(ctx, attrs{"prompt": "slow"})
		harness.Contains(t, fakecli.Text(diags), "WARNING: Agent job still running", "The next apply resumes waiting without sending anything.")
		if wantErrors(t, diags); c.Tainted || c.Get("id") != s.OnlyJob(t).ID {
			t.Errorf("tainted: %t, %s", c.Tainted, c.State)
		}
	})
}

// Red without: ValidID, and the provider's project, in ImportState.
func TestImport_I03(t *testing.T) {
	t.Setenv("AGENT_PROJECT_ID", "")
	harness.Bubble(t, byPrompt, func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
		imports := func(by any, says ...string) {
			t.Helper()
			c.Forget()
			diags := c.ImportState(t.Context(), by)
			if fakecli.Failed(diags) != (len(says) > 0) {
				t.Errorf("%v: %s", by, fakecli.Text(diags))
			}
			harness.Contains(t, fakecli.Text(diags), says...)
		}
		const refused = "ERROR: Failed to import agent job"
		id := ended(s)
		for _, by := range []any{id, harness.Project + "/" + id, attrs{"id": id}, attrs{"id": id, "project_id": harness.Project}} {
			imports(by)
			if c.Get("id") != id || c.Get("project_id") != harness.Project {
				t.Errorf("%v: %s", by, c.State)
			}
		}
		for _, by := range []string{"proj_1/a b", "a b/job_1", "/job_1", "job_1/", "a b"} {
			imports(by, refused, "PROJECT_ID/JOB_ID")
		}
		imports("proj_1/job_x", refused, "Job job_x in project proj_1 could not be read, so nothing was imported.", "404",
			"base_url, project_id and the key")
		for _, project := range []any{nil, unknown{}} {
			c.Connect(fakecli.With(s.Attrs(), attrs{"project_id": project}))
			imports(id, refused, "the provider has no project_id", "Nothing was imported or sent.", "PROJECT_ID/JOB_ID")
			imports(attrs{"id": id}, refused)
		}
		s.Sent(t, 0, 0)
	})
}

// Nobody should have the key in base_url, but its place there is no reason to log it.
// Red without: keyMask in each call; logExchange.
func TestLog_I05_key(t *testing.T) {
	t.Setenv("TF_LOG", "TRACE")
	s := harness.NewService(t, nil)
	behind := httptest.NewServer(http.StripPrefix("/"+harness.CanaryKey, s.Server))
	defer behind.Close()
	var logged strings.Builder
	ctx := tflogtest.RootLogger(tfsdklogtest.RootLogger(t.Context(), &logged), &logged)
	c := fakecli.New(t, s.Attrs())
	config := attrs{"base_url": behind.URL + "/" + harness.CanaryKey + "/", "journal": attrs{"url": t.TempDir() + stateName}}
	c.ConnectTo(ctx, provider.New("test", provider.Options{Process: harness.Process("run")}), fakecli.With(s.Attrs(), config))
	wantErrors(t, append(c.Run(ctx, attrs{"prompt": "write"}), c.Run(ctx, attrs{"prompt": "write more"})...))
	_, diags := c.Data(ctx, attrs{"id": c.Get("id")})
	wantErrors(t, append(diags, c.Refresh(ctx)...))
	for action, config := range map[string]attrs{"agent_start_job": {}, "agent_send_message": {"job_id": c.Get("id")}} {
		_, diags := c.Invoke(ctx, action, fakecli.With(config, attrs{"prompt": "write"}))
		wantErrors(t, diags)
	}
	harness.Contains(t, logged.String(), "called the agent service", "/***/v2/agent/proj_1/job")
	if at := strings.Index(logged.String(), harness.CanaryKey); at >= 0 {
		t.Errorf("the key is in the log: …%s", logged.String()[max(0, at-200):at+len(harness.CanaryKey)])
	}
}

// Pulumi's bridge is such a host: it plans and applies in one process, and keeps that for all commands. After a lost state it adopts.
func TestHost_H01_oneProcess(t *testing.T) {
	s := harness.NewService(t, nil)
	c := fakecli.New(t, s.Attrs())
	config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": t.TempDir() + stateName}})
	c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: harness.Process("run")}), config)
	for _, prompt := range []string{"A", "A", "lost", "A", "B"} {
		if prompt == "lost" {
			c.Forget()
			continue
		}
		wantErrors(t, c.Run(t.Context(), attrs{"prompt": prompt}))
	}
	s.Sent(t, 1, 1)
}

// The bucket is gone when the service has accepted the prompt: the job is in the state. Red without: JournalNotWritten; keep.
func TestJournalNotWritten_X14(t *testing.T) {
	s, bucket := harness.NewService(t, nil), fakes3.New(t)
	c := fakecli.New(t, s.Attrs())
	connect := func(run cli.Run) { // which nothing shuts down: its process would wait for the journal
		config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": bucket.URL + "&state=a"}})
		c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: harness.Process(run)}), config)
	}
	job := attrs{"prompt": "write", "wait": attrs{"enabled": false}}
	bucket.SetHook(func(*http.Request) int { return map[bool]int{true: http.StatusForbidden}[len(s.Jobs()) > 0] })
	connect("first")
	diags := c.Run(t.Context(), job)
	harness.Contains(t, fakecli.Text(diags), "WARNING: Journal not written", "job "+s.OnlyJob(t).ID+" in project proj_1 is in the state")
	bucket.SetHook(nil)
	connect("second")
	wantErrors(t, append(diags, c.Run(t.Context(), job)...))
	s.Sent(t, 1, 0)
}
