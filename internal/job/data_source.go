// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	resourceschema "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

var (
	_ datasource.DataSourceWithConfigure      = (*jobDataSource)(nil)
	_ datasource.DataSourceWithValidateConfig = (*jobDataSource)(nil)
)

type jobDataSource struct{ provider *ProviderData }

// NewDataSource returns the data source agent_job.
func NewDataSource() datasource.DataSource { return &jobDataSource{provider: unconfigured()} }

// jobDataModel is a job as a data source reads it.
type jobDataModel struct {
	ProjectID types.String   `tfsdk:"project_id"`
	Wait      types.Object   `tfsdk:"wait"`
	Timeouts  timeouts.Value `tfsdk:"timeouts"`
	jobRecord
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

func (d *jobDataSource) ValidateConfig(ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	checkTimeouts(ctx, req.Config, &resp.Diagnostics, "read")
}

func (d *jobDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var job jobDataModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &job)...)
	if resp.Diagnostics.HasError() || !d.provider.usable(&resp.Diagnostics) {
		return
	}
	job.ProjectID = d.provider.projectOr(job.ProjectID, &resp.Diagnostics)
	named := &jobModel{ProjectID: job.ProjectID, jobRecord: jobRecord{ID: job.ID}}
	defer recovered(ctx, "reading job "+named.facts().String(), wording.ReadSendsNothing, &resp.Diagnostics)
	options := readWaitOptions(ctx, job.Wait, waitOptions{onFailure: onError, onTimeout: onError}, &resp.Diagnostics)
	longest := readTimeout
	if options.enabled {
		longest = defaultJobTimeout
	}
	timeout, diags := job.Timeouts.Read(ctx, longest)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := d.provider.withTimeout(ctx, "timeouts.read", timeout)
	defer cancel()

	project, id := job.ProjectID.ValueString(), job.ID.ValueString()
	var record *agentapi.Job
	var err error
	if options.enabled {
		record, err = d.provider.Waiter.Wait(ctx, d.provider.recent.request(project, id))
	} else {
		record, err = d.provider.Sender.Client.GetJob(ctx, project, id)
	}
	switch {
	case errors.Is(err, agentapi.ErrNotFound):
		resp.Diagnostics.AddError(wording.DataNotFound.Of(named.facts(), err))
	case err != nil && !options.enabled:
		resp.Diagnostics.AddError(wording.DataReadFailed.Of(named.facts(), err))
	default:
		if record != nil {
			resp.Diagnostics.Append(job.apply(record)...)
		} else {
			options.onTimeout = onError // there is nothing to continue with
		}
		if options.enabled {
			named.jobRecord = job.jobRecord
			reportWait(named, err, options, &resp.Diagnostics, wording.DataWaitsAgain, wording.DataFailed)
		}
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
			Validators:          []validator.String{validate.ID()},
		},
		"project_id": schema.StringAttribute{
			Optional:            true,
			Computed:            true,
			MarkdownDescription: "Project of the job. Default: the provider's `project_id`.",
			Validators:          []validator.String{validate.ID()},
		},
	}
	// What the service returns is described as in the resource.
	for name, attribute := range jobSchema(ctx).Attributes {
		if _, own := attributes[name]; own || !attribute.IsComputed() {
			continue
		}
		attributes[name] = computed(attribute)
	}
	return schema.Schema{
		MarkdownDescription: "Reads a job, whoever started it, and optionally waits until it finishes.",
		Attributes:          attributes,
		Blocks: map[string]schema.Block{
			"wait": schema.SingleNestedBlock{
				MarkdownDescription: waitDescription,
				Attributes: map[string]schema.Attribute{
					"enabled": schema.BoolAttribute{
						Optional: true,
						MarkdownDescription: "Wait until the job finishes. Default: `false`, because Terraform usually reads data sources during the plan: " +
							"each plan would wait while the job is active, up to `timeouts.read`.",
					},
					"on_failure": schema.StringAttribute{
						Optional: true,
						MarkdownDescription: "What to do when the job has failed: `error` fails every plan or apply that reads it; " +
							"`warn` continues. Only with `enabled`. Default: `error`.",
						Validators: []validator.String{stringvalidator.OneOf(onError, onWarn)},
					},
					"on_timeout": schema.StringAttribute{
						Optional: true,
						MarkdownDescription: timeoutDescription +
							"`error` fails the plan or apply; `warn` continues with the job as last read, if it was. Only with `enabled`. Default: `error`.",
						Validators: []validator.String{stringvalidator.OneOf(onError, onWarn)},
					},
				},
			},
			"timeouts": timeouts.BlockWithOpts(ctx, timeouts.Opts{
				ReadDescription: "Maximum time to read the job or wait for it. Default: `60m` with `wait.enabled`, `60s` without.",
			}),
		},
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
