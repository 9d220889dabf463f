// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import (
	"fmt"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
)

const summaryJournalUnusable = "Journal not usable"

// JournalUnusable describes a journal that cannot be read or cleaned up.
func JournalUnusable(err error) Diagnostic {
	return diagnostic(summaryJournalUnusable, Sentence(err),
		"Jobs and state are not affected. Creates and messages fail before they are sent until the journal can be used, "+
			"and requests with a known outcome stay in it.",
		"If a plan that creates jobs shows this, plan again before you apply: its apply may otherwise take over a job that another resource "+
			"has, instead of sending the prompt.", checkJournal)
}

// checkJournal says what to check when the journal cannot be used.
const checkJournal = "Check that this run can list, read, write and delete there. " + keepElsewhere

// JournalOnRunner warns that the journal is on the disk of a pipeline's runner.
func JournalOnRunner(folder string) Diagnostic {
	return diagnostic("Journal on the runner's disk",
		fmt.Sprintf("The journal is in %s, because nothing else is set. It is usually lost with the runner. "+
			"If this run is then killed, the next one may send its prompts again.", escape.Printable(folder)),
		"Choose a bucket, or a folder that outlives the runner, and "+inConfiguration+" If this folder outlives it, set its absolute path.")
}

// JournalElsewhere warns that another place has entries that this run does not read.
func JournalElsewhere(number int, where string) Diagnostic {
	return diagnostic("Journal entries elsewhere",
		fmt.Sprintf("Earlier runs kept the journal of this state in %s, and left entries there: %d. This run does not read them, "+
			"so it may send a prompt again that a broken run has sent.", escape.Printable(where), number),
		"First plan with this place as journal.url, or, if the state was moved, with the backend that it had. "+
			"If that plan announces nothing, delete these entries.")
}

// JournalMoved warns that this run does not read the journal of the run that wrote the state.
func JournalMoved(where string) Diagnostic {
	return diagnostic("Journal of the last apply not used",
		fmt.Sprintf("The journal of this run is in %s. The run that last stored a job of this state kept it elsewhere. If a run there was "+
			"killed since, this one does not find what it sent, and may send it again.", escape.Printable(where)),
		"If another machine applies this state with another journal, "+inConfiguration,
		"If you have moved the journal, first plan with the earlier place until nothing is announced. "+
			"An apply that refreshes the whole state ends this warning.")
}

// EntryNotRemoved warns that an apply would find an entry of a job that the state has.
func EntryNotRemoved(e *journal.Earlier) Diagnostic {
	return diagnostic("Journal entry not removed",
		fmt.Sprintf("The state has job %s, so its entry in the journal is superfluous, but this run could not delete it. An apply of this plan "+
			"could take the job over for another resource, too, instead of sending its prompt.", escape.Printable(e.JobID)),
		"Do not apply this plan. Plan again with credentials that can delete in the journal, such as those of the apply.")
}

// JournalNotWritten warns that the journal does not contain what the state contains.
func JournalNotWritten(err error, job Job) Diagnostic {
	return diagnostic("Journal not written",
		fmt.Sprintf("The prompt was sent and job %s is in the state, but the journal could not record that.", job), Sentence(err),
		"If this state cannot be stored, or is lost, import the job: a later run cannot take it over.")
}

// JournalNotOpened describes a journal whose place cannot be found.
func JournalNotOpened(err error) Diagnostic {
	return diagnostic(summaryJournalUnusable, "The journal of this state cannot be found. "+Sentence(err), "Nothing was sent.")
}

// JournalNotBesideState describes a journal that cannot be beside the state.
func JournalNotBesideState(err error, backend string) Diagnostic {
	return diagnostic(summaryJournalUnusable,
		fmt.Sprintf("The journal is kept beside the state, but not all settings of the backend %s can be used. %s",
			escape.Printable(backend), Sentence(err)),
		"Nothing was sent. "+keepElsewhere)
}

const (
	// inConfiguration says where to name a place.
	inConfiguration = "set journal { url = \"...\" } in the provider block, rather than AGENT_JOURNAL_URL: " +
		"with the URL of a bucket, every machine that applies this state then uses the same journal."
	// keepElsewhere names the ways out.
	keepElsewhere = "To keep the journal elsewhere, " + inConfiguration +
		" To keep none, set journal { enabled = false }: then a broken run may send its prompts again."
)

// What a query says beside the jobs that it lists.
const (
	NotListed Text = "Agent jobs not listed\nThe journal is turned off, so nothing shows what earlier runs have started. " +
		"A query sends nothing. Check the journal block in the provider block."
	ListedWithoutRecord Text = "Failed to read agent job\nJob {job} is listed without its record. A query sends no prompt.\n\n{cause}\n\n" +
		"If the job no longer exists, delete its entry in the journal."
)

// requests lists requests for a text.
func requests(all []*journal.Earlier) (text string) {
	for _, e := range all {
		text += fmt.Sprintf("\n  in project %s at %s, entry %s", escape.Printable(e.Project), timestamp(e.SentAt), e.ID)
	}
	return text
}

// ListedPending describes requests whose responses can still arrive.
func ListedPending(all []*journal.Earlier) Diagnostic {
	return diagnostic("Outcome of an earlier request unknown", "Other runs sent a prompt and did not record the outcome:"+requests(all)+
		"\nThe response can still arrive. A query sends nothing. Run it again in a few minutes.")
}

// ListedUnknown describes creates whose outcome is unknown.
func ListedUnknown(all []*journal.Earlier) Diagnostic {
	return diagnostic("Outcome of agent job create unknown",
		"Earlier runs sent a prompt, and no response shows whether a job was started:"+requests(all), waysOut("PROJECT_ID", all...))
}

// ListedJobs says what a query does not know of the jobs that it lists.
func ListedJobs(number int) Diagnostic {
	return diagnostic("Listed agent jobs may be in the state",
		fmt.Sprintf("The journal has jobs that no plan has read in the state: %d. A query reads no state and sends nothing, so the jobs of "+
			"the last apply are among them.", number),
		"Before you import any of them, run a plan, and then this query again. Do not import a job that the plan announces: "+
			"the apply takes it over. If fewer are listed, raise limit in the list block.")
}

// ListedName is what a query shows of a job.
func ListedName(e *journal.Earlier) string {
	name := ""
	if e.JobName != "" {
		name = e.JobName + ", "
	}
	return escape.Printable(fmt.Sprintf("%s%s, started at %s by run %s", name, e.JobID, timestamp(e.SentAt), e.Run))
}
