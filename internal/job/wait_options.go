// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"cmp"
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// What to do when a job fails.
const (
	onError = "error"
	onWarn  = "warn"
	onRetry = "retry"
)

// waitOptions are the settings of a wait block.
type waitOptions struct {
	enabled   bool
	onFailure string // empty if it is not set and nobody waits
	isUnknown bool   // the plan does not know on_failure yet
}

// mayRetry reports whether on_failure is "retry", or may turn out to be.
func (o waitOptions) mayRetry() bool { return o.onFailure == onRetry || o.isUnknown }

// failsRuns reports whether a run with a failed job fails, as long as nothing retries it.
func (o waitOptions) failsRuns() bool { return o.onFailure == onError || o.onFailure == onRetry }

// addFailure reports a failed job with the severity that the user chose.
func (o waitOptions) addFailure(diags *diag.Diagnostics, d wording.Diagnostic) {
	if o.failsRuns() {
		addError(diags, d)
	} else {
		addWarning(diags, d)
	}
}

// readWaitOptions reads a wait block. Unknown settings have their defaults.
func readWaitOptions(ctx context.Context, wait types.Object, diags *diag.Diagnostics) waitOptions {
	options := waitOptions{enabled: true, onFailure: onError}
	if options.isUnknown = wait.IsUnknown(); wait.IsNull() || options.isUnknown {
		return options
	}
	var block struct {
		Enabled   types.Bool   `tfsdk:"enabled"`
		OnFailure types.String `tfsdk:"on_failure"`
	}
	diags.Append(wait.As(ctx, &block, basetypes.ObjectAsOptions{})...)
	if !block.Enabled.IsNull() && !block.Enabled.IsUnknown() {
		options.enabled = block.Enabled.ValueBool()
	}
	if !options.enabled {
		options.onFailure = ""
	}
	options.onFailure = cmp.Or(block.OnFailure.ValueString(), options.onFailure)
	options.isUnknown = block.OnFailure.IsUnknown()
	return options
}
