// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// EnvProjectID is the environment variable that stands in for the provider's project_id.
const EnvProjectID = "AGENT_PROJECT_ID"

// ProviderData is the provider's configuration as its resources use it.
type ProviderData struct {
	Sender    send.Sender // without a Client while an attribute is unknown or missing
	Missing   Missing
	Waiter    wait.Waiter
	ProjectID types.String // the default project; null without one
	// Mask keeps the key out of what is logged with a context. It is nil while an attribute is unknown.
	Mask     func(context.Context) context.Context
	Command  string // of the CLI, such as "plan"; empty if that is not known
	OnRunner bool   // the journal is on the disk of a pipeline's runner, and nobody chose that

	said sync.Map // what was reported, and is not reported for each resource
	run  run
}

// Missing are the settings that are not set. They are no error of the provider block: each call
// reports those that it needs.
type Missing struct {
	Service []wording.Diagnostic // without which nothing can be sent or read
	Journal []wording.Diagnostic // without which no record can be found
}

// unconfigured is what a resource has before Configure.
func unconfigured() *ProviderData {
	return &ProviderData{ProjectID: types.StringUnknown(), Sender: send.Sender{Journal: journal.InMemory()}}
}

// addError adds an error that is not about one attribute.
func addError(diags *diag.Diagnostics, d wording.Diagnostic) { diags.AddError(d.Summary, d.Detail) }

// addWarning adds a warning that is not about one attribute.
func addWarning(diags *diag.Diagnostics, d wording.Diagnostic) { diags.AddWarning(d.Summary, d.Detail) }

// isConfigured reports whether all settings are known and set. Until then nothing can be sent or read, and
// the journal may be another one.
func (d *ProviderData) isConfigured() bool { return d.Sender.Client != nil }

// checkService reports whether the service can be called, with a diagnostic if not.
func (d *ProviderData) checkService(diags *diag.Diagnostics) bool {
	if d.isConfigured() {
		return true
	}
	if !addMissing(d.Missing.Service, diags) {
		addError(diags, wording.NotConfigured())
	}
	return false
}

// addMissing adds an error for each missing setting, and reports whether there is one.
func addMissing(missing []wording.Diagnostic, diags *diag.Diagnostics) bool {
	for _, setting := range missing {
		addError(diags, setting)
	}
	return len(missing) > 0
}

// isFirst reports whether something is reported for the first time, and notes it.
func (d *ProviderData) isFirst(what any) bool {
	_, isSaid := d.said.LoadOrStore(what, true)
	return !isSaid
}

// reportMissing is addMissing for a refresh or a plan, which reports a setting once.
func (d *ProviderData) reportMissing(missing []wording.Diagnostic, diags *diag.Diagnostics) bool {
	for _, setting := range missing {
		if d.isFirst(setting) {
			addError(diags, setting)
		}
	}
	return len(missing) > 0
}

// withTimeout limits a call by a timeout that the user set, and masks the key in its log.
func (d *ProviderData) withTimeout(ctx context.Context, name string, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(d.Mask(ctx), timeout, &wording.TimeoutError{Setting: name, Timeout: timeout})
}

// projectOr returns the project of an object, or else the provider's default.
// Without either it adds an error and returns null.
func (d *ProviderData) projectOr(own types.String, diags *diag.Diagnostics) types.String {
	if !own.IsNull() {
		return own
	}
	if d.ProjectID.IsNull() {
		check.ErrorAt(diags, path.Root("project_id"),
			wording.Missing("project_id", EnvProjectID, "a project for the job, in its block or as the default"))
	}
	return d.ProjectID
}

// reportJournalError warns once that the journal cannot be used.
func (d *ProviderData) reportJournalError(err error, diags *diag.Diagnostics) {
	if err != nil && d.isFirst("journal") {
		addWarning(diags, wording.JournalUnusable(err))
	}
}

// warnOfPlace warns once, where something is sent, that the journal may not outlive this run.
func (d *ProviderData) warnOfPlace(diags *diag.Diagnostics) {
	if d.OnRunner && d.isFirst("place") {
		addWarning(diags, wording.JournalOnRunner(d.Sender.Journal.Location.Folder))
	}
}
