// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"context"
	"strings"
	"testing"

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

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

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

// Neither comparing jobs nor a table of hashes reveals the prompt behind a hash.
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
