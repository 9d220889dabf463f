// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"cmp"
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// ImportState names the job to read, by PROJECT_ID/JOB_ID, by JOB_ID in the provider's project, or by identity.
func (r *jobResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	var identity jobIdentity
	if req.ID == "" {
		resp.Diagnostics.Append(req.Identity.Get(ctx, &identity)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	own, id := identity.ProjectID, cmp.Or(req.ID, identity.ID.ValueString())
	if before, after, hasProject := strings.Cut(req.ID, "/"); hasProject {
		own, id = types.StringValue(before), after
	}
	if own.IsNull() {
		own = r.provider.ProjectID
	}
	if own.IsNull() || own.IsUnknown() {
		addError(&resp.Diagnostics, wording.ImportWithoutProject(id, EnvProjectID))
		return
	}
	project := own.ValueString()
	if !agentapi.ValidID(project) || !agentapi.ValidID(id) {
		addError(&resp.Diagnostics, wording.InvalidImport(project, id))
		return
	}
	for name, value := range map[string]string{"project_id": project, "id": id} { // a read completes the state
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), value)...)
		if resp.Identity != nil {
			resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root(name), value)...)
		}
	}
}
