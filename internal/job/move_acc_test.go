// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	testresource "github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"

	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// otherProvider stands for magodo/restful: it only stores what it is given.
type otherProvider struct{ provider.Provider }

func (otherProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "restful"
}
func (otherProvider) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse) {}
func (otherProvider) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {
}
func (otherProvider) DataSources(context.Context) []func() datasource.DataSource { return nil }
func (otherProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		func() resource.Resource { return otherResource{name: "resource"} },
		func() resource.Resource { return otherResource{name: "operation"} },
	}
}

type otherResource struct{ name string }

func (r otherResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "restful_" + r.name
}

func (otherResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{Version: 2, Attributes: map[string]schema.Attribute{
		"id": schema.StringAttribute{Required: true}, "path": schema.StringAttribute{Required: true},
	}}
}

func (otherResource) Create(_ context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	resp.State.Raw = req.Plan.Raw
}
func (otherResource) Read(context.Context, resource.ReadRequest, *resource.ReadResponse)       {}
func (otherResource) Update(context.Context, resource.UpdateRequest, *resource.UpdateResponse) {}
func (otherResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

// A real CLI moves a resource of another provider, and nothing is sent.
func TestAccMoved(t *testing.T) {
	// plugin-testing gives all its providers one namespace, and the source's counts.
	t.Setenv("TF_ACC_PROVIDER_NAMESPACE", "magodo")
	for _, typeName := range []string{"restful_resource", "restful_operation"} {
		t.Run(typeName, func(t *testing.T) {
			s := harness.NewService(t, nil)
			id := s.Create(harness.Project, "before").ID
			s.SetStatus(id, "completed")
			const setup = `
terraform {
  required_providers {
    agent   = { source = "magodo/agent" }
    restful = { source = "magodo/restful" }
  }
}
`
			old := fmt.Sprintf("resource %q \"old\" {\n  id   = \"/v2/agent/%s/job/%s\"\n  path = \"/v2/agent/%[2]s/job\"\n}\n", typeName, harness.Project, id)
			moved := setup + s.Config(harness.JobConfig("Write", `triggers = { a = "1" }`), fmt.Sprintf("moved {\n  from = %s.old\n  to   = agent_job.test\n}\n", typeName))
			factories := harness.ProviderFactories()
			factories["restful"] = providerserver.NewProtocol6WithError(otherProvider{})
			testresource.Test(t, testresource.TestCase{
				ProtoV6ProviderFactories: factories,
				TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_8_0)},
				Steps: []testresource.TestStep{
					{Config: setup + old},
					{
						Config:           moved,
						ConfigPlanChecks: harness.ExpectAction(plancheck.ResourceActionUpdate), // records prompt and triggers
						ConfigStateChecks: []statecheck.StateCheck{
							harness.ExpectAttr("id", knownvalue.StringExact(id)),
							harness.ExpectAttr("status", knownvalue.StringExact("completed")),
							harness.ExpectAttr("prompt", knownvalue.StringExact("Write")),
						},
					},
					harness.ExpectNoChange(moved),
				},
			})
			s.Sent(t, 0, 0)
		})
	}
}
