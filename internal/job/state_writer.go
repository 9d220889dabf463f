// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// stateWriter writes a job to state, identity and private state.
type stateWriter struct {
	state    *tfsdk.State
	identity *tfsdk.ResourceIdentity
	private  privateState
	marks    *marks
	diags    *diag.Diagnostics
}

// save writes the job to the state, so that nothing that follows can lose it.
func (w stateWriter) save(ctx context.Context, job *jobModel) {
	job.setPromptHash()
	saved := job.withoutWriteOnly()
	w.reportUnwritten("state", job, w.state.Set(ctx, saved))
	w.marks.write(ctx, w.private)
	w.identify(ctx, job)
}

// identify writes the identity where there is none: it never changes, and a state from an old CLI
// does not have it.
func (w stateWriter) identify(ctx context.Context, job *jobModel) {
	if w.identity != nil && w.identity.Raw.IsNull() {
		w.reportUnwritten("identity", job, w.identity.Set(ctx, jobIdentity{job.ProjectID, job.ID}))
	}
}

// reportUnwritten names the job if it could not be written.
func (w stateWriter) reportUnwritten(to string, job *jobModel, diags diag.Diagnostics) {
	if diags.HasError() {
		w.diags.Append(diags...)
		addError(w.diags, wording.StateNotWritten(job.facts(), to))
	}
}

// recoverAndSave turns a panic of a create into a diagnostic, and saves the job if the service has
// started it. Use it deferred.
func (w stateWriter) recoverAndSave(ctx context.Context, job *jobModel) {
	value := recover()
	if value == nil {
		return
	}
	where := logPanic(ctx, "create", value)
	if job.ID.ValueString() != "" {
		w.save(ctx, job)
		addError(w.diags, wording.PanickedAfterStart(job.facts(), where))
		return
	}
	addError(w.diags, wording.Panicked("starting a job in project "+job.ProjectID.ValueString(), wording.MayHaveSent, where))
}

// logPanic logs where a panic happened, and returns what a user can report: what kind of
// panic it was, and the innermost functions of the provider. Its value may contain
// anything, unless it comes from Go's runtime: it is neither logged nor shown.
func logPanic(ctx context.Context, operation string, value any) string {
	stack := string(debug.Stack())
	tflog.Error(ctx, "the provider hit an internal error", map[string]any{"operation": operation, "stack": stack})
	kind := fmt.Sprintf("%T", value)
	if fault, ok := value.(runtime.Error); ok {
		kind = fault.Error()
	}
	_, stack, _ = strings.Cut(stack, "\npanic(")
	var functions []string
	for _, function := range ownFunctions.FindAllStringSubmatch(stack, 5) {
		functions = append(functions, function[1]+function[2])
	}
	return fmt.Sprintf("The error: %s, in %s.", kind, strings.Join(functions, ", "))
}

// ownFunctions finds the provider's functions in a stack: name, arguments, a line break, file and line.
var ownFunctions = regexp.MustCompile(`terraform-provider-agent/internal/(\S+)\(.*\n\t.*(:\d+)`)

// recoverAsError turns a panic into an error, because a crash would lose the jobs that
// other calls are starting. Use it deferred.
func recoverAsError(ctx context.Context, operation, sent string, diags *diag.Diagnostics) {
	if value := recover(); value != nil {
		addError(diags, wording.Panicked(operation, sent, logPanic(ctx, operation, value)))
	}
}
