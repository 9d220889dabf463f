// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// validateProvider checks the provider's configuration with more laid over, as
// "terraform validate" does.
func (m *Matrix) validateProvider(more attrs) []*tfprotov6.Diagnostic {
	m.Helper()
	kind := m.cli.Schemas().Provider.ValueType().(tftypes.Object)
	config := m.cli.Dynamic(fakecli.Object(kind, fakecli.With(m.config, more)))
	resp, err := m.cli.Server.ValidateProviderConfig(m.ctx, &tfprotov6.ValidateProviderConfigRequest{Config: config})
	if err != nil {
		m.Fatal(err)
	}
	return m.note(resp.Diagnostics)
}

// configure starts a provider with more laid over its configuration, which is valid.
func (m *Matrix) configure(more attrs) []*tfprotov6.Diagnostic {
	m.Helper()
	m.OK(m.validateProvider(more))
	m.config = fakecli.With(m.config, more)
	return m.connect()
}

// wantInvalid asserts one error on an attribute, and that nobody was called.
func (m *Matrix) wantInvalid(diags []*tfprotov6.Diagnostic, attribute, summary string) {
	m.Helper()
	m.wantDiags(diags, "ERROR: "+summary)
	if len(diags) == 1 && diags[0].Attribute.String() != fmt.Sprintf("AttributeName(%q)", attribute) {
		m.Errorf("it is said of %s, want %s", diags[0].Attribute, attribute)
	}
	m.wantDials(0)
}

// wantInvalidSettings asserts an error for each value of an attribute of the provider, and
// one when the environment has the last of them.
func (m *Matrix) wantInvalidSettings(attribute, summary, inEnvironment string, values ...string) {
	m.Helper()
	for _, value := range values {
		m.wantInvalid(m.validateProvider(attrs{attribute: value}), attribute, summary)
		m.wantNoWords("swordfish") // a secret in a URL
	}
	m.Setenv("AGENT_"+strings.ToUpper(attribute), values[len(values)-1])
	m.wantInvalid(m.configure(attrs{attribute: nil}), attribute, inEnvironment)
}

// inputRows are odd prompts and settings.
func inputRows() []Row {
	return []Row{
		// Red without: validPrompt (each case of checkPrompt).
		{name: "I01_prompt", clock: true, Test: func(m *Matrix) {
			for _, prompt := range []string{"", " \n\t\u2003", "a\x00b", "a\xffb"} {
				m.wantInvalid(m.note(m.cli.Validate(attrs{"prompt": prompt})), "prompt", "Invalid prompt")
			}
		}},
		// Red without: validate.ID, ValidID in ImportState, and its check of the environment.
		{name: "I03_id", clock: true, Test: func(m *Matrix) {
			ids := []string{"a/b", "..", "a/../b", "a?b", "a#b", "a%2fb", "a b"}
			for _, id := range ids {
				m.wantInvalid(m.note(m.cli.Validate(attrs{"prompt": "write", "project_id": id})), "project_id", "Invalid id")
				for _, imported := range []string{"proj_1/" + id, id + "/job_1"} {
					m.wantDiags(m.imports(imported), importFailed)
					m.wantWords("PROJECT_ID/JOB_ID")
				}
			}
			m.wantInvalidSettings("project_id", "Invalid id", "Invalid project id", ids...)
		}},
		// Red without: checkKey in validKey, and in adminKey for the environment.
		{name: "I04_key", clock: true, Test: func(m *Matrix) {
			m.wantInvalidSettings("admin_key", "Invalid admin key", "Missing admin_key", "")
			m.wantInvalidSettings("admin_key", "Invalid admin key", "Invalid admin key", harness.CanaryKey+"\n", "mint_\n"+harness.CanaryKey,
				"\x1b"+harness.CanaryKey, harness.CanaryKey+" x", " \t", harness.CanaryKey+"é", harness.CanaryKey+"\x7f")
		}},
		// Red without: the case of parseBaseURL.
		{name: "I05_base_url", clock: true, Test: func(m *Matrix) {
			m.wantInvalidSettings("base_url", "Invalid base URL", "Invalid base URL",
				"", "api.example.com", "//api.example.com", "https://", "ftp://api.example.com", "https://user@api.example.com",
				"https://api.example.com/?key=swordfish", "https://api.example.com/?", "https://api.example.com/#swordfish", "https://api.example.com/#",
				"http://api.example.com", "http://10.0.0.1", "http://localhost.example.com", "https://api.example.com/\x7f", "https://user:swordfish@api.example.com")
		}},
		// Nobody should, but its place in the URL is no reason to log the key. Red without: keyMask in each call.
		{name: "I05_base_url_with_the_key", Test: func(m *Matrix) {
			behind := faultserver.New(m, http.StripPrefix("/"+harness.CanaryKey, m.Sim), faultserver.Options{})
			m.Setenv("AGENT_ADMIN_KEY", harness.CanaryKey)
			m.OK(m.configure(attrs{"base_url": behind.URL + "/" + harness.CanaryKey + "/", "admin_key": nil}))
			id := m.created(Job1())
			m.wantDiags(m.Run(fakecli.With(noWait(), Job2())), messagePlanned)
			m.OK(m.refresh())
			m.OK(m.readData(attrs{"id": id}))
			for action, config := range map[string]attrs{"agent_start_job": Job1(), "agent_send_message": fakecli.With(Job1(), attrs{"job_id": id})} {
				_, diags := m.cli.Invoke(m.ctx, action, fakecli.With(config, attrs{"wait": attrs{"enabled": false}}))
				m.OK(m.note(diags))
			}
			if !strings.Contains(m.logged(), "/***/v2/agent/proj_1/job") {
				m.Errorf("no URL in the log:\n%s", m.logged())
			}
		}},
		// Red when the prompt is changed on its way.
		{name: "I02_prompt_odd_and_of_1_MB", clock: true, Test: func(m *Matrix) {
			odd := "  first\r\n\tsecond\n👩‍🚀 ünï \u2028 \u202e ${var.x} %{if true}$${y}%%{z} <b>&amp;\"'\\</b> \\u0041\\n\n"
			prompt := strings.Repeat(odd, 1<<20/len(odd)+1)
			m.OK(m.Run(attrs{"prompt": prompt}))
			m.wantEnd("completed", 1, 0)
			if got := m.Sim.Jobs()[0].Prompts[0]; got != prompt {
				m.Errorf("the service got %d bytes, want %d: %.80q", len(got), len(prompt), got)
			}
			m.wantAttr("prompt", prompt)
			if strings.Contains(m.logged(), odd) {
				m.Error("the prompt is in the log")
			}
		}},
	}
}
