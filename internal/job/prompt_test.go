// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	frameworkresource "github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

func TestPrompt_exactlyOne(t *testing.T) {
	c := fakecli.Unconfigured(t)
	for name, test := range map[string]struct {
		config attrs
		want   string
	}{
		"prompt":             {attrs{"prompt": "write"}, ""},
		"prompt_wo":          {attrs{"prompt_wo": "write"}, ""},
		"unknown":            {attrs{"prompt_wo": fakecli.Unknown{}}, ""},
		"one of two unknown": {attrs{"prompt": "write", "prompt_wo": fakecli.Unknown{}}, ""},
		"none":               {attrs{}, "Missing Attribute Configuration"},
		"both":               {attrs{"prompt": "write", "prompt_wo": "write"}, "Invalid Attribute Combination"},
		"empty":              {attrs{"prompt_wo": " "}, "Invalid prompt"},
	} {
		t.Run(name, func(t *testing.T) {
			diags := c.Validate(test.config)
			if test.want == "" && len(diags) > 0 || !strings.Contains(fakecli.Text(diags), test.want) {
				t.Errorf("want %q in:\n%s", test.want, fakecli.Text(diags))
			}
		})
	}
}

func TestPromptWO_cliWithoutWriteOnly(t *testing.T) {
	c := fakecli.Unconfigured(t)
	resp, err := c.Server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: "agent_job", Config: c.Dynamic(fakecli.Object(c.Resource, attrs{"prompt_wo": "write"})),
	})
	if err != nil {
		t.Fatal(err)
	}
	harness.Contains(t, fakecli.Text(resp.Diagnostics), "WriteOnly Attribute Not Allowed", "Terraform 1.11")
}

// Each step is an apply; its plan and its requests are asserted.
func TestPromptWO_steps(t *testing.T) {
	const (
		sent     = "New prompt is sent to the existing agent job"
		recorded = "Prompt is recorded"
		replaced = "New prompt starts a new agent job"
		unknown  = "Prompt not known yet"
	)
	type step struct {
		before            func(s *harness.Service, c *fakecli.CLI) // what happens between the applies
		planned           attrs                                    // nil: as applied
		config            attrs
		says              string // part of what plan and apply say; empty: nothing is said
		because           []string
		creates, messages int // so far
	}
	forgetHash := func(_ *harness.Service, c *fakecli.CLI) { c.Private = nil }
	imported := func(s *harness.Service, c *fakecli.CLI) { c.ImportState(c.T.Context(), harness.Project+"/"+ended(s)) }
	fails := func(s *harness.Service, c *fakecli.CLI) { s.SetStatus(c.Get("id").(string), "failed") }
	refused := func(s *harness.Service, _ *fakecli.CLI) {
		s.Inject(simulator.Fault{Kind: simulator.KindMessage, Status: 409})
	}
	archived := func(s *harness.Service, c *fakecli.CLI) { s.SetStatus(c.Get("id").(string), "archived") }
	a, b := attrs{"prompt_wo": "A"}, attrs{"prompt_wo": "B"}
	none, noWait := attrs{}, attrs{"wait": attrs{"enabled": false}} // as planned with ignore_changes
	plain, later := attrs{"prompt": "A"}, attrs{"prompt_wo": fakecli.Unknown{}}
	for name, steps := range map[string][]step{
		"changed text":                   {{config: a, creates: 1}, {config: a, creates: 1}, {config: b, says: sent, creates: 1, messages: 1}, {config: b, creates: 1, messages: 1}},
		"to prompt and back":             {{config: a, creates: 1}, {config: plain, creates: 1}, {config: plain, creates: 1}, {config: a, creates: 1}, {config: a, creates: 1}},
		"to another prompt":              {{config: b, creates: 1}, {config: plain, says: sent, creates: 1, messages: 1}, {config: b, says: sent, creates: 1, messages: 2}},
		"refused message":                {{config: a, creates: 1}, {before: refused, config: b, says: "Failed to send message", creates: 1, messages: 1}, {config: b, says: sent, creates: 1, messages: 2}},
		"import":                         {{before: imported, config: a, says: recorded}, {config: a}, {config: b, says: sent, messages: 1}},
		"import, unknown while planning": {{before: imported, planned: later, config: a, says: recorded}, {config: a}},
		"missing hash":                   {{config: a, creates: 1}, {before: forgetHash, config: b, says: recorded, creates: 1}, {config: b, creates: 1}},
		"ignored":                        {{config: a, creates: 1}, {planned: none, config: b, creates: 1}, {planned: noWait, config: fakecli.With(b, noWait), creates: 1}, {config: b, says: sent, creates: 1, messages: 1}},
		"ignored, archived job":          {{config: a, creates: 1}, {before: archived, planned: none, config: a, creates: 1}},
		"ignored, resumed":               {{config: fakecli.With(a, noWait), creates: 1}, {planned: none, config: b, says: "Agent job is still running", creates: 1}, {config: a, creates: 1}},
		"ignored, from prompt":           {{config: plain, creates: 1}, {planned: none, config: b, creates: 1}, {config: a, creates: 1}},
		"ignored, import":                {{before: imported, planned: none, config: a}, {planned: noWait, config: fakecli.With(a, noWait)}, {config: b, says: recorded}},
		"triggers":                       {{config: a, creates: 1}, {config: attrs{"prompt_wo": "A", "triggers": attrs{"spec": "1"}}, because: []string{`AttributeName("triggers")`}, creates: 2}},
		"failed job":                     {{config: a, creates: 1}, {before: fails, config: b, says: replaced, because: []string{`AttributeName("status")`}, creates: 2}, {config: b, creates: 2}},
		"failed job, same text":          {{config: a, creates: 1}, {before: fails, config: a, says: "Agent job failed", creates: 1}},
		"unknown while planning":         {{planned: later, config: a, creates: 1}, {planned: later, config: a, says: unknown, creates: 1}, {planned: later, config: b, says: unknown, creates: 1, messages: 1}, {config: b, creates: 1, messages: 1}},
		"unknown, then empty":            {{planned: later, config: attrs{"prompt_wo": ""}, says: "Nothing was sent."}},
		"unknown, then null":             {{planned: later, config: attrs{}, says: "Nothing was sent."}},
		"unknown, then both":             {{planned: attrs{"prompt": "A", "prompt_wo": fakecli.Unknown{}}, config: attrs{"prompt": "A", "prompt_wo": "A"}, says: "Nothing was sent."}},
		"unknown on a failed job":        {{config: a, creates: 1}, {before: fails, planned: later, config: b, says: "cannot accept messages", creates: 1}, {planned: later, config: a, says: unknown, creates: 1}},
		"unknown, null on a live job":    {{config: a, creates: 1}, {planned: later, config: attrs{}, says: "Nothing was sent.", creates: 1}, {config: a, creates: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Bubble(t, harness.Always(simulator.Script{Duration: time.Minute}), func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
				for i, step := range steps {
					if step.before != nil {
						step.before(s, c)
					}
					if step.planned == nil {
						step.planned = step.config
					}
					c.Refresh(t.Context())
					diags := c.Plan(t.Context(), step.planned)
					if diff := cmp.Diff(step.because, c.Because); diff != "" {
						t.Errorf("step %d: attributes that ask for a replacement (-want +got):\n%s", i, diff)
					}
					diags = append(diags, c.Apply(t.Context(), step.config)...)
					if said := fakecli.Text(diags); step.says == "" && said != "" || !strings.Contains(said, step.says) {
						t.Errorf("step %d: want %q in:\n%s", i, step.says, said)
					}
					if c.Tainted {
						t.Errorf("step %d: tainted", i)
					}
					s.Sent(t, step.creates, step.messages)
				}
			})
		})
	}
}

// What the hash is of cannot be told by comparing jobs, or by a table of hashes.
func TestPromptWO_hashIsSalted(t *testing.T) {
	s := harness.NewService(t, nil)
	hashes := map[string]bool{}
	for range 2 {
		c := fakecli.New(t, s.Attrs())
		c.Run(t.Context(), attrs{"prompt_wo": "A"})
		_, hash, found := strings.Cut(string(c.Private), `"prompt"`)
		if hashes[hash] = true; !found {
			t.Errorf("no hash in the private state: %s", c.Private)
		}
	}
	if len(hashes) != 2 {
		t.Errorf("equal prompts have equal hashes: %v", hashes)
	}
}

// textProvider has an ephemeral resource whose text is made from its topic, and
// which is not opened before that is known.
type textProvider struct{ provider.Provider }

func (textProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "text"
}
func (textProvider) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse) {}
func (textProvider) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {
}
func (textProvider) Resources(context.Context) []func() frameworkresource.Resource { return nil }
func (textProvider) DataSources(context.Context) []func() datasource.DataSource    { return nil }
func (textProvider) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{func() ephemeral.EphemeralResource { return textResource{} }}
}

type textResource struct{}

func (textResource) Metadata(_ context.Context, _ ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = "text"
}

func (textResource) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema.Attributes = map[string]schema.Attribute{
		"topic": schema.StringAttribute{Required: true}, "text": schema.StringAttribute{Computed: true},
	}
}

func (textResource) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var topic string
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("topic"), &topic)...)
	resp.Result.Raw = req.Config.Raw
	resp.Diagnostics.Append(resp.Result.SetAttribute(ctx, path.Root("text"), "the language "+topic)...)
}

// A real CLI: the prompt from a template and an ephemeral resource, known while
// planning and not.
func TestAccPromptWO(t *testing.T) {
	s := harness.NewService(t, nil)
	with := func(topic string, arguments ...string) string {
		return s.Config(`ephemeral "text" "topic" {
  topic = terraform_data.topic.output
}
resource "terraform_data" "topic" {
  input = "` + topic + `"
}
resource "agent_job" "test" {
  prompt_wo = templatefile("testdata/prompt.tftpl", { topic = ephemeral.text.topic.text })
  ` + strings.Join(arguments, "") + `
}`)
	}
	factories := harness.ProviderFactories()
	factories["text"] = providerserver.NewProtocol6WithError(textProvider{})
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: factories, Steps: []resource.TestStep{
		{
			Config:           with("Python"),
			ConfigPlanChecks: harness.ExpectAction(plancheck.ResourceActionCreate),
			ConfigStateChecks: []statecheck.StateCheck{
				harness.ExpectAttr("prompt", knownvalue.Null()), harness.ExpectAttr("prompt_wo", knownvalue.Null()),
			},
		},
		harness.ExpectNoChange(with("Python")),
		{Config: with("Go"), ConfigPlanChecks: harness.ExpectAction(plancheck.ResourceActionUpdate)},
		harness.ExpectNoChange(with("Go")),
		{Config: with("Rust", "lifecycle { ignore_changes = [prompt_wo] }")},
	}})
	s.Sent(t, 1, 1)
	if diff := cmp.Diff([]string{"Write about the language Python.\n", "Write about the language Go.\n"}, s.OnlyJob(t).Prompts); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
}
