// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import (
	"errors"
	"fmt"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
)

// JournalUnusable describes a journal that cannot be read or written.
func JournalUnusable(err error) Diagnostic {
	failed, _ := errors.AsType[*journal.Error](err)
	return diagnostic("Journal not usable", Sentence(err),
		"Until the journal can be used, creates and messages fail and no prompt is sent. Jobs and state are not affected.", checkJournal(failed))
}

// checkJournal says what to do when the journal cannot be used. The error may be nil.
func checkJournal(failed *journal.Error) string {
	if failed != nil && failed.IsMisconfigured {
		return keepElsewhere
	}
	return "Check that this run can read and write there. " + keepElsewhere
}

// NotReplaced describes a replacement without a journal, in a plan or in an apply.
const NotReplaced Text = "Agent job not replaced\n" +
	"Job {job} stays in the state, because no new job can be started without the journal. Nothing was sent.\n\n{cause}"

// JournalOnRunner warns that the journal is on the disk of a pipeline's runner.
func JournalOnRunner(folder string) Diagnostic {
	return diagnostic("Journal on the runner's disk",
		fmt.Sprintf("The journal is in %s, because nothing else is set. It is usually lost with the runner. "+
			"If the state is then lost, or this run is killed, the next one may send its prompts again.", escape.Printable(folder)),
		"Set journal { url = \"...\" } in the provider block to a bucket, or to the absolute path of a folder that outlives the runner.")
}

// JournalNotWritten warns that the journal does not contain what the state contains.
func JournalNotWritten(err error, job Job) Diagnostic {
	return diagnostic("Journal not written",
		fmt.Sprintf("The prompt was sent and job %s is in the state, but the journal could not record that.", job), Sentence(err),
		"If this state is lost, import the job: a later run cannot adopt it.")
}

// NameNotRecorded describes a name that the journal could not give to an imported job.
func NameNotRecorded(err error, r send.Request, job Job) Diagnostic {
	return diagnostic("Journal not written",
		fmt.Sprintf("The journal could not record that job %s has the name %s. Nothing was sent, and the state is unchanged.",
			job, Quote(r.Name)), Sentence(err), "Apply again.")
}

// keepElsewhere says how to keep the journal in another place, or to keep none.
const keepElsewhere = "To keep the journal elsewhere, set journal { url = \"...\" } in the provider block. " +
	"To keep none, set journal { enabled = false }: then a broken run may send the prompts of all jobs of this provider block again."

// What a query says beside the jobs that it lists.
const (
	NotListed Text = "Agent jobs not listed\nThe journal is turned off, so nothing shows what earlier runs have started. " +
		"A query sends nothing.\n\nCheck the journal block in the provider block."
	ListedUnread Text = "Failed to read agent job\nJob {job} is listed as the journal has it. A query sends no prompt.\n\n{cause}"
)

// requests lists what was sent without a response: of each record, its claim or its last request.
func requests(records []*journal.Record, of func(*journal.Record) *journal.Entry) (text string) {
	for _, r := range records {
		text += fmt.Sprintf("\n  %s in project %s at %s, request %s",
			Quote(r.Name), escape.Printable(r.Project), timestamp(of(r).SentAt), escape.Printable(of(r).ID))
	}
	return text
}

// ListedPending describes claims whose responses can still arrive.
func ListedPending(records []*journal.Record) Diagnostic {
	return diagnostic("Outcome of another run's request unknown", "Other runs sent a prompt and did not record the outcome:"+
		requests(records, func(r *journal.Record) *journal.Entry { return r.Claim })+
		"\nThe responses can still arrive. A query sends nothing.", "Run the query again in a few minutes.")
}

// ListedUnknown describes creates whose outcome is unknown.
func ListedUnknown(records []*journal.Record) Diagnostic {
	return diagnostic("Outcome of agent job create unknown", "Earlier runs sent a prompt, and no response shows whether a job was started:"+
		requests(records, func(r *journal.Record) *journal.Entry { return r.Last }), "A plan says what to do about each.")
}

// ListedName is what a query shows of a job.
func ListedName(r *journal.Record) string {
	return escape.Printable(fmt.Sprintf("%s, %s, last sent a prompt at %s", r.Name, r.JobID, sentAt(r)))
}

// sentAt is when the last request of a record was sent.
func sentAt(r *journal.Record) string {
	if r.Last == nil {
		return "an unknown time"
	}
	return timestamp(r.Last.SentAt)
}
