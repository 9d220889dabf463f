// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package provider is the provider block: its schema, configuration and
// environment. It registers everything else.
package provider

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/job"
)

// Address is where the provider is published.
const Address = "registry.terraform.io/agentjobs/agent"

// typeName prefixes the names of all resources, data sources and actions.
const typeName = "agent"

var (
	_ provider.ProviderWithActions       = (*agentProvider)(nil)
	_ provider.ProviderWithFunctions     = (*agentProvider)(nil)
	_ provider.ProviderWithListResources = (*agentProvider)(nil)
)

// Options are what a provider needs from its process.
type Options struct {
	Process *cli.Process        // keeps the journal; nil: none is kept
	Dial    agentapi.Dial       // reaches the service; nil: a network connection
	Getenv  func(string) string // reads a variable; nil: os.Getenv
}

type agentProvider struct {
	version string
	options Options
}

// New returns the provider for one version of the plugin.
func New(version string, options Options) provider.Provider {
	if options.Getenv == nil {
		options.Getenv = os.Getenv
	}
	return &agentProvider{version: version, options: options}
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
	config.getenv = p.options.Getenv
	data := config.providerData(ctx, p, req, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.ResourceData = data
	resp.DataSourceData = data
	resp.ActionData = data
	resp.ListResourceData = data
}

func (p *agentProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{job.NewResource}
}

func (p *agentProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{job.NewDataSource}
}

func (p *agentProvider) Actions(context.Context) []func() action.Action {
	return []func() action.Action{job.NewStartJobAction, job.NewSendMessageAction}
}

func (p *agentProvider) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{job.NewList}
}

func (p *agentProvider) Functions(context.Context) []func() function.Function {
	return []func() function.Function{newPullRequestFunction}
}
