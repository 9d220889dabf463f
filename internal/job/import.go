// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/urlpath"
	"github.com/agentjobs/terraform-provider-agent/internal/validate"
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
		resp.Diagnostics.AddError("Failed to import agent job", wording.Paragraphs(
			fmt.Sprintf("The project id %s or the job id %s is not valid: each must be %s. Nothing was imported or sent.",
				wording.Quote(project), wording.Quote(id), validate.IDRule),
			"Set the import id to PROJECT_ID/JOB_ID."))
		return
	}
	resp.Diagnostics.Append(setIdentifiers(ctx, &resp.State, resp.Identity, project, id)...)
}

// setIdentifiers writes a job's ids to an empty state, which a read completes.
func setIdentifiers(
	ctx context.Context, state *tfsdk.State, identity *tfsdk.ResourceIdentity, projectID, jobID string,
) (diags diag.Diagnostics) {
	for name, value := range map[string]string{"project_id": projectID, "id": jobID} {
		diags.Append(state.SetAttribute(ctx, path.Root(name), value)...)
		if identity != nil {
			diags.Append(identity.SetAttribute(ctx, path.Root(name), value)...)
		}
	}
	return diags
}

// MoveState accepts jobs that general REST providers started. The prompt stays null,
// so the next apply records it and sends nothing. The provider is not configured
// here, so nothing can be looked up.
func (r *jobResource) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{
		{StateMover: moveFrom("magodo/restful", []string{"restful_resource", "restful_operation"}, restfulJob)},
		{StateMover: moveFrom("mastercard/restapi", []string{"restapi_object"}, restapiJob)},
	}
}

// moveFrom returns the mover for the resource types of one provider.
func moveFrom(
	provider string, typeNames []string, find func(state []byte,
	) (jobPath, bool)) func(context.Context, resource.MoveStateRequest, *resource.MoveStateResponse) {
	return func(ctx context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
		if !slices.Contains(typeNames, req.SourceTypeName) || !matchesProvider(req.SourceProviderAddress, provider) {
			return
		}
		job, ok := find(req.SourceRawState.JSON)
		if !ok {
			resp.Diagnostics.AddError("Failed to move to agent_job", wording.Paragraphs(
				fmt.Sprintf("The %s with the id %s and the path %s does not name a job of the agent service: neither ends in PROJECT_ID/job/JOB_ID, "+
					"and the path does not end in PROJECT_ID/job with a job id in the output. Nothing was changed or sent.",
					req.SourceTypeName, wording.Quote(job.ID), wording.Quote(job.Path)),
				"If it is a job, replace the moved block: remove the old resource from the state with a removed block (destroy = false), "+
					"and add an import block with the id PROJECT_ID/JOB_ID."))
			return
		}
		resp.Diagnostics.Append(setIdentifiers(ctx, &resp.TargetState, resp.TargetIdentity, job.projectID, job.jobID)...)
	}
}

// matchesProvider reports whether an address stands for a provider. The host differs
// between Terraform and OpenTofu. OpenTofu before 1.11.12 and 1.12.4 gives the
// provider's name alone, and later ones, of a resource with count or for_each,
// this provider for all instances but the first.
func matchesProvider(address, provider string) bool {
	_, name, _ := strings.Cut(provider, "/")
	_, source, _ := strings.Cut(address, "/")
	return address == name || strings.EqualFold(source, provider) || strings.HasSuffix(source, "/agent")
}

// jobPath is what the state of another provider contains about a job: the ids found
// in it, and the attributes searched for them.
type jobPath struct {
	projectID, jobID string
	ID               string `json:"id"`
	Path             string `json:"path"`
}

// restfulJob reads the state of restful_resource or restful_operation: the id
// is the path to read the job with, or, when neither read_path nor id_builder is
// set, the path that created it; the output is the response.
func restfulJob(state []byte) (job jobPath, ok bool) {
	var attributes struct {
		jobPath
		Output          json.RawMessage `json:"output"`
		SensitiveOutput json.RawMessage `json:"sensitive_output"`
	}
	_ = json.Unmarshal(state, &attributes) // what cannot be read names no job
	job = attributes.jobPath
	ok = job.fromCollection(outputID(attributes.Output)) || job.fromCollection(outputID(attributes.SensitiveOutput)) ||
		job.fromPath(job.ID) || job.fromPath(job.Path)
	return job, ok
}

// outputID is the id in a response, which the state stores as a value of dynamic
// type or, in version 0 of that provider's schemas, as text.
func outputID(output json.RawMessage) string {
	var response struct {
		ID    string `json:"id"`
		Value struct {
			ID string `json:"id"`
		} `json:"value"`
	}
	var text string
	if json.Unmarshal(output, &text) == nil {
		output = json.RawMessage(text)
	}
	if json.Unmarshal(output, &response) != nil {
		return ""
	}
	return cmp.Or(response.Value.ID, response.ID)
}

// restapiJob reads the state of restapi_object: its id is the job's, its path that
// of the collection.
func restapiJob(state []byte) (job jobPath, ok bool) {
	_ = json.Unmarshal(state, &job) // what cannot be read names no job
	ok = job.fromCollection(job.ID) || job.fromPath(job.ID) || job.fromPath(job.Path)
	return job, ok
}

// fromPath takes the ids from a path that ends like PROJECT_ID/job/JOB_ID.
func (p *jobPath) fromPath(text string) bool {
	s := pathNames(text)
	return len(s) >= 3 && s[len(s)-2] == "job" && p.found(s[len(s)-3], s[len(s)-1])
}

// fromCollection takes the project from a path that ends like PROJECT_ID/job.
func (p *jobPath) fromCollection(jobID string) bool {
	s := pathNames(p.Path)
	return len(s) >= 2 && s[len(s)-1] == "job" && p.found(s[len(s)-2], jobID)
}

func (p *jobPath) found(projectID, jobID string) bool {
	if !agentapi.ValidID(projectID) || !agentapi.ValidID(jobID) {
		return false
	}
	p.projectID, p.jobID = projectID, jobID
	return true
}

// pathNames splits a path or URL, without its query, into unescaped names; nil
// when it is none.
func pathNames(text string) []string {
	parsed, err := url.Parse(text)
	if err != nil {
		return nil
	}
	names, _ := urlpath.Segments(parsed)
	return names
}
