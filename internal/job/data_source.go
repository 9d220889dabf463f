// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
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
	options, diags := readWait(ctx, job.Wait, waitOptions{onFailure: onError, onTimeout: onError})
	resp.Diagnostics.Append(diags...)
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
			end := waitOutcome{job: &jobModel{ProjectID: job.ProjectID, jobRecord: job.jobRecord}, err: err, options: options}
			end.report(&resp.Diagnostics,
				"The next plan or apply waits on. To go on with the job as it was last seen, set wait.on_timeout to \"warn\".",
				"To read a failed job without an error, set wait.on_failure to \"warn\".")
		}
	}
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &job)...)
	}
}
