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

func TestChangedDefaultProject(t *testing.T) {
	s := harness.NewService(t, nil)
	c := fakecli.New(t, s.Attrs())
	c.Run(t.Context(), attrs{"prompt": "write"})
	c.Connect(fakecli.With(s.Attrs(), attrs{"project_id": "proj_other"}))
	c.Refresh(t.Context())
	if diags := c.Plan(t.Context(), attrs{"prompt": "write"}); len(diags) > 0 || !c.Empty() {
		t.Errorf("the job does not stay where it is: %s", fakecli.Text(diags))
	}
	t.Setenv("AGENT_PROJECT_ID", "")
	c.Forget()
	c.Connect(fakecli.With(s.Attrs(), attrs{"project_id": nil}))
	harness.Contains(t, fakecli.Text(c.Plan(t.Context(), attrs{"prompt": "write"})), "ERROR: Missing project_id", "AGENT_PROJECT_ID")
	s.Sent(t, 1, 0)
}

// A call misses what is not set and what it needs, a plan once. A plan that sends nothing needs nothing, a Delete only what leads to the
// record, and with count = 0, or for a function, there is no call.
//
// Red without: each call of reportMissing, addMissing and checkService, and the choice between Service and Journal in each; isFirst; Forget
// in providerData.
func TestMissingSettings(t *testing.T) {
	type (
		cli         = fakecli.CLI
		diagnostics = []*tfprotov6.Diagnostic
		needs       map[string]bool
	)
	var (
		ctx, write       = t.Context(), attrs{"prompt": "write"}
		service, journal = needs{"base_url": true, "admin_key": true}, needs{"base_url": true}
		stored           = attrs{"project_id": harness.Project, "name": "docs", "prompt": "before", "id": "job_1", "status": "completed", "messages": 0}
		failed, active   = fakecli.With(stored, attrs{"status": "failed"}), fakecli.With(stored, attrs{"status": "active"})
		imported         = fakecli.With(stored, attrs{"name": nil, "prompt": nil})
		forget           = attrs{"journal": attrs{"forget": []any{"aaaaaaaaaaaaaaaa"}}}
	)
	planOf := func(config attrs) func(c *cli) diagnostics {
		return func(c *cli) diagnostics {
			return c.Plan(ctx, fakecli.With(attrs{"name": "docs", "prompt": "before"}, config))
		}
	}
	apply := func(config attrs) func(c *cli) diagnostics {
		return func(c *cli) diagnostics {
			planOf(config)(c)
			return c.Apply(ctx, fakecli.With(attrs{"name": "docs", "prompt": "before"}, config))
		}
	}
	destroy := func(c *cli) diagnostics { return c.Destroy(ctx) }
	data := func(c *cli) diagnostics { _, diags := c.Data(ctx, attrs{"id": "job_1"}); return diags }
	calls := map[string]struct {
		state  attrs
		call   func(c *cli) diagnostics
		needs  needs
		isOnce bool  // a second call does not say it again
		with   attrs // in the provider block
	}{
		"plan of a create":           {nil, planOf(write), service, true, nil},
		"create":                     {nil, apply(write), service, false, nil},
		"refresh":                    {stored, func(c *cli) diagnostics { return c.Refresh(ctx) }, service, true, nil},
		"plan of a message":          {stored, planOf(write), service, true, nil},
		"update":                     {stored, apply(write), service, false, nil},
		"plan without changes":       {stored, planOf(nil), nil, true, nil},
		"plan of a setting":          {stored, planOf(attrs{"timeouts": attrs{"create": "5m"}}), nil, true, nil},
		"update of a setting":        {stored, apply(attrs{"timeouts": attrs{"create": "5m"}}), nil, false, nil},
		"plan of a wait":             {active, planOf(nil), service, true, nil},
		"plan without a wait":        {active, planOf(attrs{"wait": attrs{"enabled": false}}), nil, true, nil},
		"plan of a replacement":      {stored, planOf(attrs{"triggers": attrs{"a": "1"}}), service, true, nil},
		"plan of a retry":            {failed, planOf(attrs{"wait": attrs{"on_failure": "retry"}}), service, true, nil},
		"plan of an imported job":    {imported, planOf(nil), journal, true, nil},
		"update of an imported job":  {imported, apply(nil), journal, false, nil},
		"plan of what is given up":   {stored, planOf(nil), journal, true, forget},
		"plan of a destroy":          {stored, func(c *cli) diagnostics { return c.PlanDestroy(ctx) }, journal, true, nil},
		"destroy":                    {stored, destroy, journal, false, nil},
		"destroy, without a journal": {stored, destroy, nil, false, attrs{"journal": attrs{"enabled": false}}},
		"import":                     {nil, func(c *cli) diagnostics { return c.ImportState(ctx, "proj_1/job_1") }, service, true, nil},
		"data source":                {nil, data, service, false, nil},
		"list":                       {nil, func(c *cli) diagnostics { _, diags := c.List(ctx, true); return diags }, service, false, nil},
		"list without attributes":    {nil, func(c *cli) diagnostics { _, diags := c.List(ctx, false); return diags }, journal, false, nil},
		"plan of an action": {
			nil, func(c *cli) diagnostics { _, diags := c.PlanAction(ctx, "agent_start_job", write); return diags }, service, true, nil,
		},
	}
	// No CLI makes a call without any configuration; it must not panic. Red without: the checks for a nil connection.
	for call, test := range calls {
		c := fakecli.Unconfigured(t)
		c.Forget()
		if test.state != nil {
			c.State = fakecli.Object(c.Resource, test.state)
		}
		diags := test.call(c)
		needsAll := call == "import" || strings.HasPrefix(call, "list")
		if fails := test.needs["admin_key"] && !test.isOnce || needsAll; fakecli.Failed(diags) != fails {
			t.Errorf("%s: %s", call, fakecli.Text(diags))
		}
	}
	for variable, config := range map[string]attrs{
		"base_url":  {"admin_key": harness.CanaryKey, "project_id": harness.Project},
		"admin_key": {"base_url": "https://api.example.com", "project_id": harness.Project},
	} {
		t.Run("I07_"+variable, func(t *testing.T) {
			t.Setenv("AGENT_"+strings.ToUpper(variable), "")
			if diags := fakecli.CheckProvider(t, config); len(diags) > 0 {
				t.Error(fakecli.Text(diags))
			}
			for call, test := range calls {
				c := fakecli.New(t, fakecli.With(config, test.with))
				for i := range 2 {
					if test.state != nil {
						c.State = fakecli.Object(c.Resource, test.state)
					}
					diags, misses := test.call(c), test.needs[variable] && (i == 0 || !test.isOnce)
					if text := fakecli.Text(diags); strings.Contains(text, "ERROR: Missing "+variable+": ") != misses || strings.Count(text, "ERROR") > 1 {
						t.Errorf("%s, call %d: %s", call, i+1, text)
					}
					// Else an apply that plans again without the key has another plan.
					if got := c.Attribute(c.Planned, "project_id"); call == "plan of a create" && !misses && got != harness.Project {
						t.Errorf("planned project_id: %v", got)
					}
				}
			}
			// The successor of what is replaced could not be created.
			c := fakecli.New(t, fakecli.With(attrs{"base_url": "https://api.example.com", "admin_key": harness.CanaryKey}, config))
			c.State = fakecli.Object(c.Resource, stored)
			planOf(attrs{"triggers": attrs{"a": "1"}})(c)
			c.Connect(config)
			harness.Contains(t, fakecli.Text(c.Delete(ctx, c.PlannedPrivate)), "ERROR: Missing "+variable)
		})
	}
}

// While a setting is not known, a plan succeeds, nothing is read or sent, and a state keeps its job.
//
// Red without: known in providerData; projectOr; keepUnrefreshed.
func TestUnknownSettings_I06(t *testing.T) {
	ctx, write := t.Context(), attrs{"prompt": "write"}
	good := attrs{"base_url": "https://service.invalid", "admin_key": harness.CanaryKey, "project_id": harness.Project}
	for name, value := range map[string]any{
		"admin_key": unknown{}, "base_url": unknown{}, "project_id": unknown{}, "max_new_jobs": unknown{},
		"poll": attrs{"min_interval": unknown{}, "max_interval": "10ms"},
	} {
		c := fakecli.New(t, fakecli.With(good, attrs{name: value}))
		diags := c.Plan(ctx, write)
		if got := c.Attribute(c.Planned, "project_id"); len(diags) > 0 || (got == unknown{}) != (name == "project_id") {
			t.Errorf("%s: project_id is planned as %v: %s", name, got, fakecli.Text(diags))
		}
		harness.Contains(t, fakecli.Text(c.Apply(ctx, write)), "ERROR: Agent provider not configured", "First apply the resources")
		harness.Contains(t, fakecli.Text(c.ImportState(ctx, "proj_1/job_1")), "configuration is not known yet. Nothing was sent.")
		c.State = fakecli.Object(c.Resource, attrs{
			"project_id": harness.Project, "name": "a", "prompt": "write", "id": "job_1", "status": "completed",
		})
		before := c.State
		c.Identity = nil // as an old CLI leaves it
		harness.Contains(t, fakecli.Text(c.Refresh(ctx)), "WARNING: Agent provider not configured")
		if diags := c.Plan(ctx, write); len(diags) > 0 || !c.Empty() || !c.State.Equal(before) || c.Identity == nil {
			t.Errorf("%s: a job does not stay as it was: %s %v %s", name, c.Planned, c.Identity, fakecli.Text(diags))
		}
	}
	if diags := fakecli.CheckProvider(t, fakecli.With(good, attrs{"poll": unknown{}})); len(diags) > 0 {
		t.Error(fakecli.Text(diags))
	}
	for _, journal := range []any{unknown{}, attrs{"enabled": unknown{}}, attrs{"url": unknown{}}, attrs{"forget": unknown{}}} {
		diags := fakecli.CheckProvider(t, fakecli.With(good, attrs{"journal": journal}))
		harness.Contains(t, fakecli.Text(diags), "ERROR: Unknown journal settings", "journal.enabled, journal.url and journal.forget", "AGENT_JOURNAL_URL")
	}
}

// A secret is not repeated.
//
// Red without: origin in each of them, ParseURL in providerModel.journal, ValidID in its look at AGENT_JOURNAL_FORGET.
func TestInvalidProviderConfiguration(t *testing.T) {
	const key, environment = harness.CanaryKey, "environment"
	good := attrs{"base_url": "https://api.example.com", "admin_key": key}
	bad := func(row, attribute, want string, values ...any) {
		for _, value := range values {
			t.Run(fmt.Sprintf("%s %s %q", row, attribute, value), func(t *testing.T) {
				config, origin := fakecli.With(good, attrs{attribute: value}), ""
				if row == environment { // without a provider block, the error must name where a bad value comes from
					t.Setenv("AGENT_BASE_URL", "https://api.example.com")
					t.Setenv("AGENT_ADMIN_KEY", key)
					variable := "AGENT_" + strings.ToUpper(strings.ReplaceAll(attribute, " ", "_"))
					t.Setenv(variable, value.(string))
					config, origin = attrs{"max_new_jobs": 1, "max_messages": 1}, "environment variable "+variable
				}
				diags := fakecli.CheckProvider(t, config)
				got := fakecli.Text(diags)
				harness.Contains(t, got, "ERROR: ", want, origin)
				if _, isBlock := value.(attrs); !isBlock {
					fakecli.WantPath(t, diags, strings.Fields(attribute)...)
				}
				if strings.Contains(got, key) || origin == "" && strings.Contains(got, "environment variable") {
					t.Errorf("the key is shown, or another origin: %s", got)
				}
			})
		}
	}
	bad("I03", "project_id", "Invalid id", "a/b")
	bad("I04", "admin_key", "Invalid admin key", "", " \t", "mint_\n"+key, "\x1b"+key, key+" x", key+"é", key+"\x7f")
	bad("I04", "admin_key", "quotation mark", `"`+key+`"`)
	bad("I04", "admin_key", `"Bearer": remove that`, "Bearer "+key)
	bad("I04", "admin_key", "trimspace", key+"\n")
	bad("I05", "base_url", "absolute", "127.0.0.1:8787", key)
	bad("I05", "base_url", "user name or password", "https://user:"+key+"@api.example.com")
	bad("I05", "base_url", "line break", "https://api.example.com\n")
	bad(
		"I05", "base_url", "Invalid base URL", "", "api.example.com", "//api.example.com", "https://", "ftp://api.example.com",
		"https://user@api.example.com", "https://api.example.com/?key="+key, "https://api.example.com/?", "https://api.example.com/#"+key,
		"https://api.example.com/#", "http://api.example.com", "http://10.0.0.1", "http://localhost.example.com", "http://localhost.",
		"http://LocalHost", "http://127.0.0.1.", "https://api.example.com/\x7f",
	)
	for _, url := range []string{"relative/" + key, "s3://bucket?endpoint=https://a:" + key + "@example.com"} {
		bad("others", "journal", "Invalid journal URL", attrs{"url": url})
	}
	bad("others", "journal", "contains a null value", attrs{"forget": []any{nil}})
	bad("others", "request_timeout", "at least 1s", "0s", "60")
	bad("others", "poll", "interval (10s) must not be longer than max_interval (1s);", attrs{"min_interval": "10s", "max_interval": "1s"})
	bad("others", "poll", "at least 10ms", attrs{"min_interval": "9ms"}, attrs{"min_interval": "10ms", "max_interval": "9ms"})
	bad("others", "poll", "at least 1", attrs{"max_per_second": 0})
	bad("others", "max_new_jobs", "at least 0", -1)
	bad("others", "max_messages", "at least 0", -1)
	bad("others", "ca_certificates_pem", "PEM", "no")
	bad(environment, "base_url", "Invalid base URL", "https://api.example.com\n")
	bad(environment, "admin_key", "Invalid admin key", key+"\r")
	bad(environment, "project_id", "Invalid id", "a b")
	bad(environment, "journal url", "Invalid journal URL", "relative/"+key)
	bad(environment, "journal forget", `AGENT_JOURNAL_FORGET contains "b"`, "aaaaaaaaaaaaaaaa, b")
	for _, number := range []string{"-1", "+1", "1.5", " 1", "many", "9223372036854775808"} {
		want := ` is "` + number + `". It must be a whole number`
		bad(environment, "max_new_jobs", want, number)
		bad(environment, "max_messages", want, number)
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
		{nil, "", "max_new_jobs = 20 (default) allows"},
		{nil, "21", ""},
		{1, "", "max_new_jobs = 1 allows"},
		{1, "0", "AGENT_MAX_NEW_JOBS = 0 allows"},
		{0, "1", "max_new_jobs = 0 allows"},
		{21, "21", ""},
		{unknown{}, "", ""},
		{unknown{}, "1", "AGENT_MAX_NEW_JOBS = 1 allows"},
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
