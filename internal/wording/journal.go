// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import "fmt"

const summaryJournalUnusable = "Journal not usable"

// JournalUnusable describes a journal that cannot be read or cleaned up.
func JournalUnusable(err error, named bool) (summary, detail string) {
	effect := "But if this run is killed or cannot store its state, the next one may send a prompt again."
	next := "Check that the folder can be read and written."
	if named {
		effect = "Creates and messages fail before they are sent until the journal can be used, and requests with a known outcome stay in it."
		next = "Check journal.url and the credentials of this run: both plan and apply must be able to list, read, write and delete there."
	}
	return summaryJournalUnusable, Paragraphs(Sentence(err), "Jobs and state are not affected. "+effect, next)
}

// JournalNotWritten warns that a named journal does not contain what the state contains.
func JournalNotWritten(err error, job Job) (summary, detail string) {
	return "Journal not written", Paragraphs(
		fmt.Sprintf("The prompt was sent and job %s is in the state, but the journal could not record that.", job), Sentence(err),
		"No action is needed unless this state is lost: then import the job, because a later run cannot take it over.")
}

// JournalNotOpened describes a journal whose settings cannot be used.
func JournalNotOpened(err error) (summary, detail string) {
	return summaryJournalUnusable, Paragraphs(
		Sentence(err), "Nothing was sent. Check journal.url, or AGENT_JOURNAL_URL if that is not set.")
}
