// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"errors"
	"fmt"

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
func NewDataSource() datasource.DataSource { return &jobDataSource{} }

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
	d.provider, _ = req.ProviderData.(*ProviderData)
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
	defer recovered("read of a data source", &resp.Diagnostics)
	options := readWaitOptions(ctx, job.Wait, waitOptions{onFailure: onError, onTimeout: onError}, &resp.Diagnostics)
	longest := readTimeout
	if options.enabled {
		longest = defaultJobTimeout
	}
	timeout, diags := job.Timeouts.Read(ctx, longest)
	resp.Diagnostics.Append(diags...)
	job.ProjectID = d.provider.projectOr(job.ProjectID, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(d.provider.Mask(ctx), timeout)
	defer cancel()

	project, id := job.ProjectID.ValueString(), job.ID.ValueString()
	var record *agentapi.Job
	var err error
	if options.enabled {
		record, err = d.provider.Waiter.Wait(ctx, d.provider.recent.request(project, id))
	} else {
		record, err = d.provider.Client.GetJob(ctx, project, id)
	}
	switch {
	case errors.Is(err, agentapi.ErrNotFound):
		resp.Diagnostics.AddError(jobNotFound(err, project, id))
	case err != nil && !options.enabled:
		resp.Diagnostics.AddError("Failed to read agent job", wording.Paragraphs(fmt.Sprintf("Job %s in project %s.", id, project), cause(err)))
	case err != nil && record == nil:
		options.onTimeout = onError // there is nothing to go on with
		fallthrough
	default:
		if record != nil {
			resp.Diagnostics.Append(job.apply(record)...)
		}
		if options.enabled {
			reportWait(&jobModel{ProjectID: job.ProjectID, jobRecord: job.jobRecord}, err, options, &resp.Diagnostics,
				"The next plan or apply waits on. To go on with the job as it was last seen, set wait.on_timeout to \"warn\".",
				"To read a failed job without an error, set wait.on_failure to \"warn\".")
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
			MarkdownDescription: "Project that the job belongs to. Default: the provider's `project_id`.",
			Validators:          []validator.String{validate.ID()},
		},
		"wait": schema.SingleNestedAttribute{
			Optional: true,
			MarkdownDescription: "Whether to wait for the end of the job, and what its outcome does to the run. " +
				"Without a wait the job is read once, and whatever its status, reading it succeeds.",
			Attributes: map[string]schema.Attribute{
				"enabled": schema.BoolAttribute{
					Optional: true,
					MarkdownDescription: "Wait until the job has ended. Default: `false`, because data sources are read while Terraform plans: " +
						"the wait for a job that is known by then holds up the plan, and every later one while the job is active.",
				},
				"on_failure": schema.StringAttribute{
					Optional: true,
					MarkdownDescription: "What a job that ends as `failed` does: `error` fails the plan or apply, each time until the job is another one; " +
						"`warn` goes on. Only with `enabled`. Default: `error`.",
					Validators: []validator.String{stringvalidator.OneOf(onError, onWarn)},
				},
				"on_timeout": schema.StringAttribute{
					Optional: true,
					MarkdownDescription: "What a wait does that ends before its job, because of `timeouts`, the key, or a service that cannot be reached: " +
						"`error` fails the plan or apply; `warn` goes on with the job as it was last seen, if it was. Only with `enabled`. Default: `error`.",
					Validators: []validator.String{stringvalidator.OneOf(onError, onWarn)},
				},
			},
		},
		"timeouts": timeouts.AttributesWithOpts(ctx, timeouts.Opts{
			ReadDescription: "Longest time to read the job and, with `wait`, to wait for its end. Default: `60m` with `wait`, `60s` without.",
		}),
	}
	// The record is that of the resource, in the same words.
	for name, attribute := range jobSchema(ctx).Attributes {
		if _, own := attributes[name]; own || !attribute.IsComputed() {
			continue
		}
		attributes[name] = computed(attribute)
	}
	return schema.Schema{
		MarkdownDescription: "Reads a job of the agent, whoever started it, and waits for its end when asked to.\n\n" +
			"With `wait = { enabled = false }` on the resource `agent_job` and a wait here, a run has two steps: the resource ends once the service has taken the prompt, " +
			"and the wait follows.",
		Attributes: attributes,
	}
}

// computed makes an attribute that the service gives one of a data source.
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
