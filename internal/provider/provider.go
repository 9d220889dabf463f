// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package provider is the Terraform side: schema, plan, state and diagnostics
// around the client and the wait.
package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
)

// Address is where the provider is published.
const Address = "registry.terraform.io/agentjobs/agent"

// typeName prefixes the names of all resources, data sources and actions.
const typeName = "agent"

var (
	_ provider.ProviderWithActions   = (*agentProvider)(nil)
	_ provider.ProviderWithFunctions = (*agentProvider)(nil)
)

type agentProvider struct {
	version string
	journal *journal.Journal // nil: none is kept
	dial    agentapi.Dial    // nil: the client's own
}

// New returns the provider for one version of the plugin. Its crash journal is
// the process's own; nil keeps none.
func New(version string, crashes *journal.Journal) func() provider.Provider {
	return func() provider.Provider { return &agentProvider{version: version, journal: crashes} }
}

func (p *agentProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = typeName
	resp.Version = p.version
}

func (p *agentProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = providerSchema()
}

func (p *agentProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var config providerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	conn := config.connect(ctx, p, req.TerraformVersion, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.ResourceData = conn
	resp.DataSourceData = conn
	resp.ActionData = conn
}

func (p *agentProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{newJobResource}
}

func (p *agentProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{newJobDataSource}
}

func (p *agentProvider) Actions(context.Context) []func() action.Action {
	return []func() action.Action{newStartJobAction, newSendMessageAction}
}

func (p *agentProvider) Functions(context.Context) []func() function.Function {
	return []func() function.Function{newPRLinkFunction}
}
