// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

func TestAccConfigurationFromEnvironment(t *testing.T) {
	s := harness.NewService(t, nil)
	t.Setenv("AGENT_BASE_URL", s.URL+"/")
	t.Setenv("AGENT_ADMIN_KEY", harness.CanaryKey)
	t.Setenv("AGENT_PROJECT_ID", "proj_env")
	harness.Run(t, resource.TestStep{
		Config:            `provider "agent" {}` + "\n" + harness.JobConfig("Write"),
		ConfigStateChecks: []statecheck.StateCheck{harness.ExpectAttr("project_id", knownvalue.StringExact("proj_env"))},
	})
	s.Sent(t, 1, 0)
}

func TestAccUnknownKeyAtPlan(t *testing.T) {
	s := harness.NewService(t, nil)
	config := func(trigger string) string {
		return fmt.Sprintf(`
resource "terraform_data" "key" {
  input            = %q
  triggers_replace = %q
}
provider "agent" {
  base_url   = %q
  admin_key  = terraform_data.key.output
  project_id = %q
  poll       = { min_interval = "20ms" }
}
`, harness.CanaryKey, trigger, s.URL, harness.Project) + harness.JobConfig("Write")
	}
	calls := 0
	harness.Run(t,
		resource.TestStep{Config: config("1")},
		resource.TestStep{
			PreConfig: func() { calls = s.Counts().Get },
			Config:    config("2"), // the key is unknown again, and a job is in the state
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(harness.JobAddress, plancheck.ResourceActionNoop),
			}},
		},
	)
	if calls == 0 {
		t.Error("the first step made no GET")
	}
	s.Sent(t, 1, 0)
}

func TestUnknownConfigurationIsSaid(t *testing.T) {
	s := harness.NewService(t, nil)
	c := fakecli.New(t, s.Attrs())
	c.Run(t.Context(), attrs{"prompt": "write"})
	config := s.Attrs()
	config["admin_key"] = unknown{}
	c.Connect(config)
	harness.Contains(t, fakecli.Text(c.Refresh(t.Context())), "WARNING: Agent job not refreshed", "admin_key")
	harness.Contains(t, fakecli.Text(c.ImportState(t.Context(), "p/j")), "ERROR: Failed to import agent job", "admin_key")
}

// No CLI does so; it must not panic. Red without: the checks for a nil connection.
func TestNoConfigurationAtAll(t *testing.T) {
	c := fakecli.Unconfigured(t)
	c.State = fakecli.Object(c.Resource, attrs{"project_id": harness.Project, "id": "job_1", "status": "active", "prompt": "write"})
	harness.Contains(t, fakecli.Text(c.Refresh(t.Context())), "WARNING: Agent job not refreshed")
	harness.Contains(t, fakecli.Text(c.Plan(t.Context(), attrs{"prompt": "write more"})), "WARNING: New prompt is sent")
	harness.Contains(t, fakecli.Text(c.Apply(t.Context(), attrs{"prompt": "write more"})), "ERROR: Agent provider not configured")
	harness.Contains(t, fakecli.Text(c.Destroy(t.Context())), "WARNING: Agent job goes on")
	if diags := c.Plan(t.Context(), attrs{"prompt": "write"}); len(diags) > 0 {
		t.Error(fakecli.Text(diags))
	}
	_, diags := c.Data(t.Context(), attrs{"id": "job_1"})
	harness.Contains(t, fakecli.Text(diags), "ERROR: Agent provider not configured")
	_, diags = c.Invoke(t.Context(), "agent_start_job", attrs{"prompt": "write"})
	harness.Contains(t, fakecli.Text(diags), "ERROR: Agent provider not configured")
}

func TestAccChangedDefaultProjectLeavesJobsWhereTheyAre(t *testing.T) {
	s := harness.NewService(t, nil)
	other := strings.Replace(s.Config(harness.JobConfig("Write")), harness.Project, "proj_other", 1)
	own := s.Config(harness.JobConfig("Write", `project_id = "proj_own"`))
	harness.Run(t,
		resource.TestStep{Config: s.Config(harness.JobConfig("Write"))},
		harness.ExpectNoChange(other),
		resource.TestStep{Config: own, ConfigPlanChecks: harness.ExpectAction(plancheck.ResourceActionDestroyBeforeCreate)},
		harness.ExpectNoChange(own),
	)
	s.Sent(t, 2, 0)
}

func TestAccMissingConfiguration(t *testing.T) {
	for _, name := range []string{"base_url", "admin_key", "project_id"} {
		t.Run(name, func(t *testing.T) {
			lines := map[string]string{
				"base_url":   `base_url = "https://api.example.com"`,
				"admin_key":  fmt.Sprintf("admin_key = %q", harness.CanaryKey),
				"project_id": `project_id = "proj_1"`,
			}
			delete(lines, name)
			var given []string
			for _, line := range lines {
				given = append(given, line)
			}
			harness.Run(t, resource.TestStep{
				Config:      "provider \"agent\" {\n" + strings.Join(given, "\n") + "\n}\n" + harness.JobConfig("Write"),
				ExpectError: regexp.MustCompile(`(?s)Missing ` + name + `.*AGENT_` + strings.ToUpper(name)),
			})
		})
	}
}

func TestInvalidProviderConfiguration(t *testing.T) {
	for _, test := range []struct {
		name      string
		attribute string
		value     any
		want      string
	}{
		{"no scheme", "base_url", "api.example.com", "absolute"},
		{"address and port", "base_url", "127.0.0.1:8787", "absolute"},
		{"userinfo", "base_url", "https://user:" + harness.CanaryKey + "@api.example.com", "user name or password"},
		{"query", "base_url", "https://api.example.com?a=b", "query"},
		{"fragment", "base_url", "https://api.example.com#a", "fragment"},
		{"http elsewhere", "base_url", "http://api.example.com", "https://"},
		{"URL empty", "base_url", "", "empty"},
		{"URL with a line break", "base_url", "https://api.example.com\n", "line break"},
		{"URL in quotation marks", "base_url", `"https://api.example.com"`, "quotation mark"},
		{"key for a URL", "base_url", harness.CanaryKey, "absolute"},
		{"key empty", "admin_key", "", "empty"},
		{"key in quotation marks", "admin_key", `"` + harness.CanaryKey + `"`, "quotation mark"},
		{"key with its scheme", "admin_key", "Bearer " + harness.CanaryKey, `"Bearer": leave it out`},
		{"key with a line break", "admin_key", harness.CanaryKey + "\n", "trimspace"},
		{"key with a control character", "admin_key", harness.CanaryKey + "\x07x", "control character"},
		{"project with a slash", "project_id", "a/b", "cannot be the id"},
		{"timeout of nothing", "request_timeout", "0s", "at least 1s"},
		{"timeout without unit", "request_timeout", "60", "duration"},
		{"intervals", "poll", attrs{"min_interval": "10s", "max_interval": "1s"}, "min_interval (10s) is longer than max_interval (1s)."},
		{"shortest interval of next to nothing", "poll", attrs{"min_interval": "9ms"}, "at least 10ms"},
		{"longest interval of next to nothing", "poll", attrs{"min_interval": "10ms", "max_interval": "9ms"}, "at least 10ms"},
		{"no polls", "poll", attrs{"max_per_second": 0}, "at least 1"},
		{"fewer jobs than none", "max_new_jobs", -1, "at least 0"},
		{"fewer messages than none", "max_messages", -1, "at least 0"},
		{"certificates", "ca_certificates_pem", "no", "PEM"},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := attrs{"base_url": "https://api.example.com", "admin_key": harness.CanaryKey, "project_id": harness.Project}
			config[test.attribute] = test.value
			got := fakecli.Text(fakecli.CheckProvider(t, config))
			harness.Contains(t, got, "ERROR", test.want)
			if strings.Contains(got, harness.CanaryKey) {
				t.Errorf("the key is shown: %s", got)
			}
		})
	}
	good := attrs{"base_url": "https://api.example.com", "admin_key": harness.CanaryKey}
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

// Who has no provider block must be told where a bad value comes from.
func TestOriginOfABadValueIsSaid(t *testing.T) {
	for variable, bad := range map[string]string{
		"AGENT_BASE_URL": "https://api.example.com\n", "AGENT_ADMIN_KEY": harness.CanaryKey + "\r", "AGENT_PROJECT_ID": "a b",
	} {
		t.Run(variable, func(t *testing.T) {
			for name, good := range map[string]string{
				"AGENT_BASE_URL": "https://api.example.com", "AGENT_ADMIN_KEY": harness.CanaryKey, "AGENT_PROJECT_ID": harness.Project,
			} {
				t.Setenv(name, good)
			}
			t.Setenv(variable, bad)
			harness.Contains(t, fakecli.Text(fakecli.CheckProvider(t, nil)), "ERROR: Invalid", "environment variable "+variable)
			attribute := strings.ToLower(strings.TrimPrefix(variable, "AGENT_"))
			if got := fakecli.Text(fakecli.CheckProvider(t, attrs{attribute: bad})); !strings.Contains(got, "ERROR: Invalid") || strings.Contains(got, variable) {
				t.Errorf("of a value in the provider block: %s", got)
			}
		})
	}
}

func TestLowerLimitCounts(t *testing.T) {
	for _, test := range []struct {
		name      string
		attribute any
		variable  string
		want      string // what the error of a plan of two jobs names; empty: no error
	}{
		{"neither", nil, "", ""},
		{"attribute", 1, "", "(max_new_jobs = 1)"},
		{"variable", nil, "1", "(AGENT_MAX_NEW_JOBS = 1)"},
		{"variable lower", 1, "0", "(AGENT_MAX_NEW_JOBS = 0)"},
		{"attribute lower", 0, "1", "(max_new_jobs = 0)"},
		{"both high enough", 2, "2", ""},
		{"attribute unknown", unknown{}, "1", "(AGENT_MAX_NEW_JOBS = 1)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("AGENT_MAX_NEW_JOBS", test.variable)
			s := harness.NewService(t, nil)
			c := fakecli.New(t, fakecli.With(s.Attrs(), attrs{"max_new_jobs": test.attribute}))
			got := fakecli.Text(append(c.Plan(t.Context(), attrs{"prompt": "write"}), c.Plan(t.Context(), attrs{"prompt": "write"})...))
			if test.want == "" && got != "" {
				t.Error(got)
			}
			harness.Contains(t, got, test.want)
		})
	}
}

func TestBadLimitInEnvironment(t *testing.T) {
	config := attrs{"base_url": "https://api.example.com", "admin_key": harness.CanaryKey, "max_new_jobs": 1, "max_messages": 1}
	for _, variable := range []string{"AGENT_MAX_NEW_JOBS", "AGENT_MAX_MESSAGES"} {
		for _, bad := range []string{"-1", "+1", "1.5", " 1", "many", "9223372036854775808"} {
			t.Run(variable+" "+bad, func(t *testing.T) {
				t.Setenv(variable, bad)
				diags := fakecli.CheckProvider(t, config)
				harness.Contains(t, fakecli.Text(diags), "ERROR: Invalid limit", "environment variable "+variable+" is \""+bad+"\"")
				fakecli.WantPath(t, diags, tftypes.NewAttributePath().WithAttributeName(strings.ToLower(strings.TrimPrefix(variable, "AGENT_"))))
			})
		}
		t.Run(variable+" good", func(t *testing.T) {
			t.Setenv(variable, "0")
			if diags := fakecli.CheckProvider(t, config); len(diags) > 0 {
				t.Error(fakecli.Text(diags))
			}
		})
	}
}

// What a configuration gives as the key is masked wherever a CLI shows it.
func TestKeyIsSensitive(t *testing.T) {
	for _, attribute := range fakecli.Unconfigured(t).Schemas().Provider.Block.Attributes {
		if attribute.Sensitive != (attribute.Name == "admin_key") {
			t.Errorf("%s is sensitive: %t", attribute.Name, attribute.Sensitive)
		}
	}
}
