// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	resourceschema "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

var _ datasource.DataSourceWithConfigure = (*jobDataSource)(nil)

type jobDataSource struct{ provider *ProviderData }

// NewDataSource returns the data source agent_job.
func NewDataSource() datasource.DataSource { return &jobDataSource{provider: unconfigured()} }

// jobDataModel is a job as a data source reads it.
type jobDataModel struct {
	ProjectID types.String `tfsdk:"project_id"`
	shownJob
}

func (d *jobDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_job"
}

func (d *jobDataSource) Schema(ctx context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = jobDataSchema(ctx)
}

func (d *jobDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	if data, ok := req.ProviderData.(*ProviderData); ok {
		d.provider = data
	}
}

func (d *jobDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var job jobDataModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &job)...)
	if resp.Diagnostics.HasError() || !d.provider.checkService(&resp.Diagnostics) {
		return
	}
	job.ProjectID = d.provider.projectOr(job.ProjectID, &resp.Diagnostics)
	named := &jobModel{ProjectID: job.ProjectID, shownJob: shownJob{ID: job.ID}}
	defer recoverAsError(ctx, "reading job "+named.facts().String(), wording.ReadSendsNothing, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	shown, err := d.provider.Sender.Client.ReadJob(d.provider.Mask(ctx), job.ProjectID.ValueString(), job.ID.ValueString())
	switch {
	case errors.Is(err, agentapi.ErrNotFound):
		addError(&resp.Diagnostics, wording.DataNotFound.Of(named.facts(), err))
	case err != nil:
		addError(&resp.Diagnostics, wording.DataReadFailed.Of(named.facts(), err))
	default:
		resp.Diagnostics.Append(job.set(shown)...)
	}
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &job)...)
	}
}

func jobDataSchema(ctx context.Context) schema.Schema {
	attributes := map[string]schema.Attribute{
		"id": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: "Id of the job.",
			Validators:          []validator.String{check.ValidID()},
		},
		"project_id": schema.StringAttribute{
			Optional:            true,
			Computed:            true,
			MarkdownDescription: "Project of the job. Default: the provider's `project_id`.",
			Validators:          []validator.String{check.ValidID()},
		},
	}
	// What the service returns is described as in the resource.
	for name, attribute := range jobSchema(ctx).Attributes {
		// The service returns neither messages, which a resource counts, nor prompts.
		if _, own := attributes[name]; own || !attribute.IsComputed() || name == "messages" || name == "prompt_wo_hash" {
			continue
		}
		attributes[name] = computed(attribute)
	}
	return schema.Schema{
		MarkdownDescription: "Reads a job, whoever started it.",
		Attributes:          attributes,
	}
}

// computed turns a computed attribute of the resource into one of the data source.
func computed(attribute resourceschema.Attribute) schema.Attribute {
	object, ok := attribute.(resourceschema.SingleNestedAttribute)
	if !ok {
		return schema.StringAttribute{Computed: true, MarkdownDescription: attribute.GetMarkdownDescription()}
	}
	inner := map[string]schema.Attribute{}
	for name, attribute := range object.Attributes {
		inner[name] = computed(attribute)
	}
	return schema.SingleNestedAttribute{Computed: true, MarkdownDescription: object.MarkdownDescription, Attributes: inner}
}
