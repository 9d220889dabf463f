// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// EnvProjectID is the environment variable that stands in for the provider's project_id.
const EnvProjectID = "AGENT_PROJECT_ID"

// readTimeout is for how long a refresh tries to reach the service.
const readTimeout = 60 * time.Second

// ProviderData is what the provider's configuration gives to its resources.
type ProviderData struct {
	Client    *agentapi.Client // nil while an attribute is not known yet
	Waiter    wait.Waiter
	ProjectID types.String // the default project; null without one
	Unknown   []string     // the attributes not known yet
	Mask      func(context.Context) context.Context
	Journal   *journal.Journal // nil: none is kept
	Scope     string           // tells states apart in the journal
	Limits    Limits
	recent    recentEvents

	journalWarning sync.Once
}

// usable reports whether the service can be called, and says why not.
func (d *ProviderData) usable(diags *diag.Diagnostics) bool {
	if d != nil && d.Client != nil {
		return true
	}
	diags.AddError("Agent provider not configured", wording.Paragraphs(
		"The provider's configuration is not known, so the service cannot be called.", d.notKnownYet()))
	return false
}

// notKnownYet names the attributes that a plan cannot know, in a sentence.
func (d *ProviderData) notKnownYet() string {
	if d == nil || len(d.Unknown) == 0 {
		return ""
	}
	return "Not known yet: " + strings.Join(d.Unknown, ", ") + "."
}

// projectOr is the project that an object names itself, or else the provider's
// default. Without either it says so and returns null.
func (d *ProviderData) projectOr(own types.String, diags *diag.Diagnostics) types.String {
	if !own.IsNull() {
		return own
	}
	if d == nil {
		return types.StringUnknown()
	}
	if d.ProjectID.IsNull() {
		wording.AddMissing(diags, "project_id", EnvProjectID, "the project that the job shall belong to, here or as its default")
	}
	return d.ProjectID
}

// lookUp retrieves a job, for as long as a refresh tries to reach the service.
// The end of that time is not the end of the resource's timeouts.
func (d *ProviderData) lookUp(ctx context.Context, projectID, jobID string) (*agentapi.Job, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readTimeout, errors.New("no answer within a minute"))
	defer cancel()
	return d.Client.GetJob(ctx, projectID, jobID)
}

// recentEvents holds what this process did to jobs. A data source that waits for
// one of them needs it: the service may show a new job late, and after a message
// the earlier end for a while.
type recentEvents struct{ byJob sync.Map }

// add records an event of now.
func (r *recentEvents) add(projectID, jobID string, event wait.Event) {
	r.byJob.Store([2]string{projectID, jobID}, wait.Request{ProjectID: projectID, JobID: jobID, After: event, At: time.Now()})
}

// request describes a wait for the job after its last event, if there is one.
func (r *recentEvents) request(projectID, jobID string) wait.Request {
	recent, _ := r.byJob.Load([2]string{projectID, jobID})
	if request, ok := recent.(wait.Request); ok {
		return request
	}
	return wait.Request{ProjectID: projectID, JobID: jobID, After: wait.Resumed}
}
