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

// wantInvalidSetting asserts an error on an attribute of the provider, and one
// when the environment has the value; an empty summary leaves that out.
func (m *Matrix) wantInvalidSetting(attribute, value, summary, inEnvironment string) {
	m.Helper()
	m.wantInvalid(m.validateProvider(attrs{attribute: value}), attribute, summary)
	m.wantNoWords("swordfish") // a secret in a URL
	if inEnvironment != "" {
		m.Setenv("AGENT_"+strings.ToUpper(attribute), value)
		m.wantInvalid(m.configure(attrs{attribute: nil}), attribute, inEnvironment)
	}
}

// inputRows are odd prompts and settings.
func inputRows() []Row {
	var rows []Row
	// Red without: promptValidator (each case of checkPrompt).
	for name, prompt := range map[string]string{"empty": "", "white_space": " \n\t\u2003", "nul": "a\x00b", "invalid_utf8": "a\xffb"} {
		rows = append(rows, Row{name: "I01_prompt_" + name, Test: func(m *Matrix) {
			m.wantInvalid(m.note(m.cli.Validate(attrs{"prompt": prompt})), "prompt", "Invalid prompt")
		}})
	}
	// Red when the prompt is trimmed on its way.
	for name, prompt := range map[string]string{
		"1_MB":       strings.Repeat("0123456789abcdef", 1<<16),
		"multi_line": "  first\r\n\tsecond\n\n", "emoji": "👩‍🚀 ünï \u2028 \u202e", "template": "${var.x} %{if true}$${y}%%{z}",
		"markup": `<b>&amp;"'\</b>`, "escapes": `\u0041\n\\`,
	} {
		rows = append(rows, Row{name: "I02_prompt_" + name, Test: func(m *Matrix) {
			m.OK(m.Run(attrs{"prompt": prompt}))
			m.wantEnd("completed", 1, 0)
			if got := m.Sim.Jobs()[0].Prompts[0]; got != prompt {
				m.Errorf("the service got %d bytes, want %d: %.80q", len(got), len(prompt), got)
			}
			m.wantAttr("prompt", prompt)
			if strings.Contains(m.log.String(), prompt) {
				m.Error("the prompt is in the log")
			}
		}})
	}
	// Red without: idValidator, ValidID in ImportState, and its check of the environment.
	for name, id := range map[string]string{
		"slash": "a/b", "dots": "..", "dots_inside": "a/../b", "question_mark": "a?b", "fragment": "a#b", "percent": "a%2fb", "space": "a b",
	} {
		rows = append(rows, Row{name: "I03_id_with_" + name, Test: func(m *Matrix) {
			m.wantInvalid(m.note(m.cli.Validate(attrs{"prompt": "write", "project_id": id})), "project_id", "Invalid id")
			for _, imported := range []string{"proj_1/" + id, id + "/job_1"} {
				m.wantDiags(m.imports(imported), importFailed)
				m.wantWords("PROJECT_ID/JOB_ID")
			}
			m.wantInvalidSetting("project_id", id, "Invalid id", "Invalid project id")
		}})
	}
	// Red without: checkKey in keyValidator, and in adminKey for the environment.
	for name, key := range map[string]string{
		"newline_at_the_end": harness.CanaryKey + "\n", "newline": "mint_\n" + harness.CanaryKey, "escape": "\x1b" + harness.CanaryKey, "space": harness.CanaryKey + " x",
		"white_space": " \t", "delete": harness.CanaryKey + "\x7f", "not_ascii": harness.CanaryKey + "é", "nothing": "",
	} {
		rows = append(rows, Row{name: "I04_key_with_" + name, Test: func(m *Matrix) {
			m.wantInvalidSetting("admin_key", key, "Invalid admin key", map[bool]string{true: "Missing admin_key", false: "Invalid admin key"}[key == ""])
		}})
	}
	// Red without: the case of parseBaseURL.
	for name, base := range map[string]string{
		"no_scheme": "api.example.com", "no_scheme_but_slashes": "//api.example.com", "no_host": "https://", "ftp": "ftp://api.example.com",
		"user": "https://user@api.example.com", "password": "https://user:swordfish@api.example.com", "query": "https://api.example.com/?key=swordfish",
		"empty_query": "https://api.example.com/?", "fragment": "https://api.example.com/#swordfish", "empty_fragment": "https://api.example.com/#",
		"http": "http://api.example.com", "http_private_address": "http://10.0.0.1", "http_like_loopback": "http://localhost.example.com",
		"control": "https://api.example.com/\x7f",
	} {
		rows = append(rows, Row{name: "I05_base_url_" + name, Test: func(m *Matrix) {
			m.wantInvalidSetting("base_url", base, "Invalid base URL", "Invalid base URL")
		}})
	}
	rows = append(rows, Row{name: "I05_base_url_empty", Test: func(m *Matrix) {
		m.wantInvalidSetting("base_url", "", "Invalid base URL", "") // an empty variable counts as not set
	}})
	// Nobody should, but its place in the URL is no reason to log the key. Red without: keyMask in each call.
	rows = append(rows, Row{name: "I05_base_url_with_the_key", Test: func(m *Matrix) {
		behind := faultserver.New(m, http.StripPrefix("/"+harness.CanaryKey, m.Sim), faultserver.Options{})
		m.Setenv("AGENT_ADMIN_KEY", harness.CanaryKey)
		m.OK(m.configure(attrs{"base_url": behind.URL + "/" + harness.CanaryKey, "admin_key": nil}))
		id := m.created(Job1())
		m.wantDiags(m.Run(fakecli.With(noWait(), Job2())), messagePlanned)
		m.OK(m.refresh())
		m.OK(m.readData(attrs{"id": id}))
		for action, config := range map[string]attrs{"agent_start_job": Job1(), "agent_send_message": fakecli.With(Job1(), attrs{"id": id})} {
			_, diags := m.cli.Invoke(m.ctx, action, fakecli.With(config, attrs{"wait": attrs{"enabled": false}}))
			m.OK(m.note(diags))
		}
		if !strings.Contains(m.log.String(), "/***/v2/agent/proj_1/job") {
			m.Errorf("no URL in the log:\n%s", m.log.String())
		}
	}})
	for _, suffix := range []string{"", "/", "/gateway", "/gateway/", "/gateway//"} {
		rows = append(rows, Row{name: "I05_base_url_fine_with_suffix_" + strings.ReplaceAll(suffix, "/", "-"), Test: func(m *Matrix) {
			prefix := strings.TrimRight(suffix, "/")
			behind := faultserver.New(m, http.StripPrefix(prefix, m.Sim), faultserver.Options{})
			m.OK(m.configure(attrs{"base_url": behind.URL + suffix}))
			m.created(Job1())
			for _, r := range behind.Requests() {
				if !strings.HasPrefix(r.Path, prefix+"/v2/agent/proj_1/job") {
					m.Errorf("asked for %s", r.Path)
				}
			}
			if posts := behind.Count(faultserver.Create); posts != 1 {
				m.Errorf("%d POSTs", posts)
			}
		}})
	}
	return rows
}
