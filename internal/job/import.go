// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

func (r *jobResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	var identity jobIdentity
	if req.ID == "" {
		resp.Diagnostics.Append(req.Identity.Get(ctx, &identity)...)
	}
	project, id := identity.ProjectID.ValueString(), identity.ID.ValueString()
	if req.ID != "" {
		project, id, _ = strings.Cut(req.ID, "/")
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if !agentapi.ValidID(project) || !agentapi.ValidID(id) {
		resp.Diagnostics.AddError(wording.InvalidImport(project, id))
		return
	}
	for name, value := range map[string]string{"project_id": project, "id": id} { // a read completes the state
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), value)...)
		if resp.Identity != nil {
			resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root(name), value)...)
		}
	}
}
