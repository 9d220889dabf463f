// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

// What a diagnostic of a read says about prompts.
const (
	ReadSendsNothing    = "A data source sends no prompt."
	RefreshSendsNothing = "A refresh sends no prompt."

	notFound        Text = "Agent job not found\nThe service does not know job {job}. "
	notFoundInState      = notFound + "The state keeps the job as last read. " + RefreshSendsNothing + "\n\n{cause}\n\n" + ifGone
	ifGone               = "If the job no longer exists, remove the resource from the configuration, or start another job. {another}"
	// unconfigured is the end of a text about a call that came before the configuration was known.
	unconfigured = ", because the provider's configuration is not known yet. Nothing was sent.\n\n" + makeKnown
	makeKnown    = "First apply the resources that the configuration depends on (-target), or use variables instead."
	// summaryNotConfigured is the summary of such a text.
	summaryNotConfigured = "Agent provider not configured"
)

// What a refresh, a data source, an import or a destroy reports about a job.
const (
	RefreshFailed Text = "Failed to read agent job\n" +
		"Job {job} could not be read. The state keeps it as last read. " + RefreshSendsNothing +
		"\n\n{cause}\n\nTo plan without reading it, use -refresh=false."
	NotRefreshed   Text = summaryNotConfigured + "\nJob {job} is shown as last read" + unconfigured
	DataNotFound   Text = notFound + ReadSendsNothing + "\n\n{cause}"
	DataReadFailed Text = "Failed to read agent job\n" +
		"Job {job} could not be read. " + ReadSendsNothing + "\n\n{cause}\n\nThe next plan or apply reads it again."
	ImportFailed Text = "Failed to import agent job\n" +
		"Job {job} could not be read, so nothing was imported. An import sends no prompt.\n\n{cause}\n\nImport it again once it can be read."
	ImportUnconfigured Text = "Failed to import agent job\nJob {job} was not imported" + unconfigured
	NotRemoved         Text = "Agent job not removed from state\n" +
		"Job {job} stays in the state, because this run was interrupted while it waited for the outcome of another run's request. " +
		"Nothing was sent.\n\nApply again."
	ActiveRemoved Text = activeLeaves +
		"This run removed job {job} from the state and sent nothing to it. It was active when it was last read. The service cannot cancel a " +
		"job, so it may still be running and open a pull request. Check it in the service's dashboard."
)

// NotFound describes a job in the state that a refresh did not find. request is its last one; it
// may be empty.
func NotFound(job Job, err error, request string) Diagnostic {
	return notFoundInState.about(job, err, request)
}

// InvalidImport describes an import id, or an identity, that names no job.
func InvalidImport(project, id string) Diagnostic {
	return diagnostic("Failed to import agent job", "The project id "+Quote(project)+" or the job id "+Quote(id)+
		" is not valid: each must be "+IDRule+". Nothing was imported or sent."+importForm)
}

// ImportWithoutProject describes an import by the id of a job alone, while the provider has no
// project for it.
func ImportWithoutProject(id, variable string) Diagnostic {
	return diagnostic("Failed to import agent job", "The import of job "+Quote(id)+" names no project, and the provider has no project_id, "+
		"or none that is known yet. Nothing was imported or sent."+importForm+" Or set project_id in the provider block, or the environment "+
		"variable "+variable+".")
}

const importForm = "\n\nSet the import id to PROJECT_ID/JOB_ID."

// InvalidLink describes a link that is not safe to show and open.
func InvalidLink(jobID, link string) Diagnostic {
	return diagnostic("Invalid pull request link", "The service returned a link for job "+jobID+" that is not a plain http or https "+
		"URL, so pr_link is null: "+Quote(link)+"\n\nLook for the pull request in the service's dashboard.")
}
