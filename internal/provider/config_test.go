// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

type (
	attrs   = fakecli.Attrs
	unknown = fakecli.Unknown
)

// No CLI does so; it must not panic. Red without: the checks for a nil connection.
func TestNoConfigurationAtAll(t *testing.T) {
	c := fakecli.Unconfigured(t)
	c.State = fakecli.Object(c.Resource, attrs{
		"project_id": harness.Project, "id": "job_1", "status": "active", "name": "a", "prompt": "write",
	})
	harness.Contains(t, fakecli.Text(c.Refresh(t.Context())), "WARNING: Agent job not refreshed")
	harness.Contains(t, fakecli.Text(c.Plan(t.Context(), attrs{"prompt": "write more"})), "WARNING: Follow-up message to agent job")
	harness.Contains(t, fakecli.Text(c.Apply(t.Context(), attrs{"prompt": "write more"})), "ERROR: Agent provider not configured")
	harness.Contains(t, fakecli.Text(c.Destroy(t.Context())), "WARNING: Active agent job removed from state")
	if diags := c.Plan(t.Context(), attrs{"prompt": "write"}); len(diags) > 0 {
		t.Error(fakecli.Text(diags))
	}
	_, diags := c.Data(t.Context(), attrs{"id": "job_1"})
	harness.Contains(t, fakecli.Text(diags), "ERROR: Agent provider not configured")
	_, diags = c.Invoke(t.Context(), "agent_start_job", attrs{"prompt": "write"})
	harness.Contains(t, fakecli.Text(diags), "ERROR: Agent provider not configured")
}

func TestChangedDefaultProject(t *testing.T) {
	s := harness.NewService(t, nil)
	c := fakecli.New(t, s.Attrs())
	c.Run(t.Context(), attrs{"prompt": "write"})
	c.Connect(fakecli.With(s.Attrs(), attrs{"project_id": "proj_other"}))
	c.Refresh(t.Context())
	if diags := c.Plan(t.Context(), attrs{"prompt": "write"}); len(diags) > 0 || !c.Empty() {
		t.Errorf("the job does not stay where it is: %s", fakecli.Text(diags))
	}
	if c.Plan(t.Context(), attrs{"prompt": "write", "project_id": "proj_own"}); !c.Replace {
		t.Error("no new job in the project that the resource names")
	}
	t.Setenv("AGENT_PROJECT_ID", "")
	c.Forget()
	c.Connect(fakecli.With(s.Attrs(), attrs{"project_id": nil}))
	harness.Contains(t, fakecli.Text(c.Plan(t.Context(), attrs{"prompt": "write"})), "ERROR: Missing project_id", "AGENT_PROJECT_ID")
	s.Sent(t, 1, 0)
}

// What is not set is missed by what needs it: with count = 0, or for a function, nothing is. A plan says so once.
//
// Red without: each call of lacks and usable; once in lacks.
func TestMissingSettings(t *testing.T) {
	for variable, missing := range map[string]attrs{
		"base_url":   {"admin_key": harness.CanaryKey},
		"admin_key":  {"base_url": "https://api.example.com"},
		"project_id": {"base_url": "https://api.example.com", "admin_key": harness.CanaryKey},
	} {
		t.Run("I07_"+variable, func(t *testing.T) {
			for _, name := range []string{"AGENT_BASE_URL", "AGENT_ADMIN_KEY", "AGENT_PROJECT_ID"} {
				t.Setenv(name, "")
			}
			if diags := fakecli.CheckProvider(t, missing); len(diags) > 0 {
				t.Error(fakecli.Text(diags))
			}
			write, inState := attrs{"prompt": "write"}, fakecli.With(attrs{"project_id": harness.Project, "name": "a", "prompt": "before"},
				attrs{"id": "job_1", "status": "completed"})
			for call, test := range map[string]struct {
				state                attrs
				call                 func(c *fakecli.CLI) []*tfprotov6.Diagnostic
				isOnce, needsProject bool
			}{
				"create, plan": {nil, func(c *fakecli.CLI) []*tfprotov6.Diagnostic { return c.Plan(t.Context(), write) }, true, true},
				"create, apply": {nil, func(c *fakecli.CLI) []*tfprotov6.Diagnostic {
					c.Plan(t.Context(), write)
					return c.Apply(t.Context(), write)
				}, false, false},
				"refresh":      {inState, func(c *fakecli.CLI) []*tfprotov6.Diagnostic { return c.Refresh(t.Context()) }, true, false},
				"update, plan": {inState, func(c *fakecli.CLI) []*tfprotov6.Diagnostic { return c.Plan(t.Context(), write) }, true, false},
				"update, apply": {inState, func(c *fakecli.CLI) []*tfprotov6.Diagnostic {
					c.Plan(t.Context(), write)
					return c.Apply(t.Context(), write)
				}, false, false},
				"destroy, plan": {inState, func(c *fakecli.CLI) []*tfprotov6.Diagnostic { return c.PlanDestroy(t.Context()) }, true, false},
				"destroy":       {inState, func(c *fakecli.CLI) []*tfprotov6.Diagnostic { return c.Destroy(t.Context()) }, false, false},
				"import":        {nil, func(c *fakecli.CLI) []*tfprotov6.Diagnostic { return c.ImportState(t.Context(), "proj_1/job_1") }, true, false},
				"data source": {nil, func(c *fakecli.CLI) []*tfprotov6.Diagnostic {
					_, diags := c.Data(t.Context(), attrs{"id": "job_1"})
					return diags
				}, false, true},
				"list": {nil, func(c *fakecli.CLI) []*tfprotov6.Diagnostic { _, diags := c.List(t.Context(), false); return diags }, false, false},
				"action, plan": {nil, func(c *fakecli.CLI) []*tfprotov6.Diagnostic {
					_, diags := c.PlanAction(t.Context(), "agent_start_job", write)
					return diags
				}, true, true},
			} {
				if variable == "project_id" && !test.needsProject {
					continue
				}
				c := fakecli.New(t, missing)
				c.State = c.Decode(nil)
				if test.state != nil {
					c.State = fakecli.Object(c.Resource, test.state)
				}
				for i, want := range []bool{true, !test.isOnce || variable == "project_id"} {
					diags := test.call(c)
					if got := strings.Contains(fakecli.Text(diags), "ERROR: Missing "+variable+": "); got != want || want && len(diags) != 1 {
						t.Errorf("%s, call %d: %s", call, i+1, fakecli.Text(diags))
					}
				}
			}
		})
	}
}

func TestInvalidProviderConfiguration(t *testing.T) {
	good := attrs{"base_url": "https://api.example.com", "admin_key": harness.CanaryKey}
	type mistake struct {
		attribute string
		value     any
		want      string
	}
	mistakes := map[string][]mistake{
		"I03": {{"project_id", "a/b", "Invalid id"}},
		"I04": {
			{"admin_key", "", "Invalid admin key"}, {"admin_key", " \t", "Invalid admin key"},
			{"admin_key", `"` + harness.CanaryKey + `"`, "quotation mark"},
			{"admin_key", "Bearer " + harness.CanaryKey, `"Bearer": remove that`},
			{"admin_key", harness.CanaryKey + "\n", "trimspace"},
		},
		"I05": {
			{"base_url", "127.0.0.1:8787", "absolute"},
			{"base_url", "https://user:" + harness.CanaryKey + "@api.example.com", "user name or password"},
			{"base_url", "https://api.example.com\n", "line break"},
			{"base_url", harness.CanaryKey, "absolute"},
		},
		"others": {
			{"journal", attrs{"url": "relative/" + harness.CanaryKey}, "Invalid journal URL"},
			{"journal", attrs{"url": "s3://bucket?endpoint=https://a:" + harness.CanaryKey + "@example.com"}, "Invalid journal URL"},
			{"request_timeout", "0s", "at least 1s"},
			{"request_timeout", "60", "duration"},
			{"poll", attrs{"min_interval": "10s", "max_interval": "1s"}, "min_interval (10s) must not be longer than max_interval (1s)."},
			{"poll", attrs{"min_interval": "9ms"}, "at least 10ms"},
			{"poll", attrs{"min_interval": "10ms", "max_interval": "9ms"}, "at least 10ms"},
			{"poll", attrs{"max_per_second": 0}, "at least 1"},
			{"max_new_jobs", -1, "at least 0"},
			{"max_messages", -1, "at least 0"},
			{"ca_certificates_pem", "no", "PEM"},
		},
	}
	for _, key := range []string{"mint_\n" + harness.CanaryKey, "\x1b" + harness.CanaryKey, harness.CanaryKey + " x", harness.CanaryKey + "é", harness.CanaryKey + "\x7f"} {
		mistakes["I04"] = append(mistakes["I04"], mistake{"admin_key", key, "Invalid admin key"})
	}
	for _, url := range []string{
		"", "api.example.com", "//api.example.com", "https://", "ftp://api.example.com", "https://user@api.example.com",
		"https://api.example.com/?key=" + harness.CanaryKey, "https://api.example.com/?", "https://api.example.com/#" + harness.CanaryKey, "https://api.example.com/#",
		"http://api.example.com", "http://10.0.0.1", "http://localhost.example.com", "http://localhost.", "http://LocalHost", "http://127.0.0.1.", "https://api.example.com/\x7f",
	} {
		mistakes["I05"] = append(mistakes["I05"], mistake{"base_url", url, "Invalid base URL"})
	}
	for row, mistakes := range mistakes {
		t.Run(row, func(t *testing.T) {
			for _, m := range mistakes {
				diags := fakecli.CheckProvider(t, fakecli.With(good, attrs{m.attribute: m.value}))
				got := fakecli.Text(diags)
				harness.Contains(t, got, "ERROR", m.want)
				if _, isBlock := m.value.(attrs); !isBlock {
					fakecli.WantPath(t, diags, m.attribute)
				}
				if strings.Contains(got, harness.CanaryKey) || strings.Contains(got, "environment variable") {
					t.Errorf("the key is shown, or another origin: %s", got)
				}
			}
		})
	}
	good["journal"] = attrs{"enabled": false} // which needs no URL
	t.Setenv("AGENT_JOURNAL_URL", "relative")
	for _, fine := range []attrs{
		{"base_url": "https://api.example.com/prefix/"}, {"base_url": "http://127.0.0.1:80"}, {"base_url": "http://localhost"},
		{"base_url": "http://[::1]:8080/x"}, {"base_url": "http://[::ffff:127.0.0.1]"}, {"admin_key": "!~"}, {"request_timeout": "1s"},
		{"poll": attrs{"min_interval": "10ms", "max_interval": "10ms", "max_per_second": 1}}, {"max_new_jobs": 0, "max_messages": 0},
	} {
		if diags := fakecli.CheckProvider(t, fakecli.With(good, fine)); len(diags) > 0 {
			t.Errorf("%v: %s", fine, fakecli.Text(diags))
		}
	}
}

// Without a provider block, the error must name where a bad value comes from. A secret is not repeated.
//
// Red without: origin in each of them, ParseURL in providerModel.journal, ValidID in its look at AGENT_JOURNAL_FORGET.
func TestInvalidEnvironment(t *testing.T) {
	type row struct{ attribute, bad, want string }
	rows := []row{
		{"base_url", "https://api.example.com\n", "Invalid base URL"},
		{"admin_key", harness.CanaryKey + "\r", "Invalid admin key"},
		{"project_id", "a b", "Invalid project id"},
		{"journal url", "relative/" + harness.CanaryKey, "Invalid journal URL"},
		{"journal url", "s3://bucket?endpoint=https://a:" + harness.CanaryKey + "@example.com", "Invalid journal URL"},
		{"journal forget", "aaaaaaaaaaaaaaaa, b", `AGENT_JOURNAL_FORGET contains "b"`},
	}
	for _, number := range []string{"-1", "+1", "1.5", " 1", "many", "9223372036854775808"} {
		want := ` is "` + number + `". It must be a whole number`
		rows = append(rows, row{"max_new_jobs", number, want}, row{"max_messages", number, want})
	}
	for _, test := range rows {
		t.Run(test.attribute+" "+test.bad, func(t *testing.T) {
			t.Setenv("AGENT_BASE_URL", "https://api.example.com")
			t.Setenv("AGENT_ADMIN_KEY", harness.CanaryKey)
			variable := "AGENT_" + strings.ToUpper(strings.ReplaceAll(test.attribute, " ", "_"))
			t.Setenv(variable, test.bad)
			diags := fakecli.CheckProvider(t, attrs{"max_new_jobs": 1, "max_messages": 1})
			text := fakecli.Text(diags)
			harness.Contains(t, text, "ERROR: ", test.want, "environment variable "+variable)
			fakecli.WantPath(t, diags, strings.Fields(test.attribute)...)
			if strings.Contains(text, harness.CanaryKey) {
				t.Errorf("the value is repeated: %s", text)
			}
		})
	}
}

// A configuration cannot send the key of the environment to a service of its choice.
//
// Red without: isElsewhere in baseURL; and, in it, each spelling of one URL.
func TestBaseURLOfEnvironment(t *testing.T) {
	for _, test := range []struct {
		variable, attribute string
		key                 any
		refused             bool
	}{
		{"https://api.example.com", "https://other.example.com", nil, true},
		{"https://api.example.com", "https://api.example.com:8443", nil, true},
		{"https://api.example.com/docs", "https://api.example.com/other", nil, true},
		{"https://api.example.com/docs", "https://api.example.com/docs/../other", nil, true},
		{"https://127.0.0.1", "http://127.0.0.1", nil, true},
		{"not a URL", "https://api.example.com", nil, true},
		{"https://api.example.com", "https://other.example.com", harness.CanaryKey, false},
		{"https://api.example.com", "https://other.example.com", unknown{}, false},
		{"", "https://other.example.com", nil, false},
		{"https://api.example.com", "https://API.Example.com:443/", nil, false},
		{"https://api.example.com/docs/", "https://api.example.com/docs", nil, false},
	} {
		t.Setenv("AGENT_ADMIN_KEY", harness.CanaryKey)
		t.Setenv("AGENT_BASE_URL", test.variable)
		diags := fakecli.CheckProvider(t, attrs{"base_url": test.attribute, "admin_key": test.key})
		if fakecli.Failed(diags) != test.refused {
			t.Errorf("%+v: %s", test, fakecli.Text(diags))
		}
		if test.refused {
			harness.Contains(t, fakecli.Text(diags), "ERROR: Invalid base URL", "AGENT_BASE_URL", "Nothing was sent.", "admin_key")
			fakecli.WantPath(t, diags, "base_url")
		}
	}
}

func TestLowerLimitCounts(t *testing.T) {
	for _, test := range []struct {
		attribute any
		variable  string
		want      string // what the error of a plan of 21 jobs names; empty: no error
	}{
		{nil, "", "max_new_jobs = 20 (default): "},
		{nil, "21", ""},
		{21, "", ""},
		{1, "", "max_new_jobs = 1: "},
		{1, "0", "AGENT_MAX_NEW_JOBS = 0: "},
		{0, "1", "max_new_jobs = 0: "},
		{21, "21", ""},
		{unknown{}, "", ""},
		{unknown{}, "1", "AGENT_MAX_NEW_JOBS = 1: "},
	} {
		t.Setenv("AGENT_MAX_NEW_JOBS", test.variable)
		c := fakecli.New(t, fakecli.With(harness.NewService(t, nil).Attrs(), attrs{"max_new_jobs": test.attribute}))
		got := ""
		for i := range 21 {
			got += fakecli.Text(c.Plan(t.Context(), attrs{"name": fmt.Sprint(i), "prompt": "write"}))
		}
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%+v: %s", test, got)
		}
	}
}
