// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import "fmt"

// MayHaveSent is what to check after an internal error that may follow a POST.
const MayHaveSent = "The prompt may have been sent: check the project's jobs in the service's dashboard before you apply again."

// Panicked describes an internal error during an operation; sent says whether it sent anything.
func Panicked(operation, sent, where string) Diagnostic {
	return internalError(fmt.Sprintf("The provider hit an internal error while %s. %s", operation, sent), where)
}

// PanickedAfterStart describes an internal error after a job was started.
func PanickedAfterStart(job Job, where string) Diagnostic {
	return internalError(fmt.Sprintf("The provider hit an internal error after job %s was started. "+
		"The job is in the state. The next apply sends nothing, and resumes waiting if the job has not finished.", job), where)
}

// StateNotWritten names a job that could not be written to the state or the identity.
func StateNotWritten(job Job, to string) Diagnostic {
	return internalError(fmt.Sprintf("Job %s could not be written to the %s. %s", job, to, MayHaveSent), "")
}

// internalError describes a bug of the provider, and where it is.
func internalError(what, where string) Diagnostic {
	return diagnostic("Internal error in the agent provider", what, where,
		"Please report this at https://github.com/agentjobs/terraform-provider-agent/issues, without keys and prompts.")
}
