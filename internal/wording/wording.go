// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package wording has what a plan or an apply says: functions from facts to diagnostics. The text
// of an error, which some of them quote, is in the package where the error arises.
package wording

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
)

// Diagnostic is the text of an error or a warning.
type Diagnostic struct{ Summary, Detail string }

const (
	// maxText is how long a diagnostic may be, in bytes.
	maxText = 4000
	// maxEnd is how much of a longer one is kept of its end, which says what to do.
	maxEnd = 1500
)

// diagnostic makes the detail of paragraphs; empty ones are left out. Every diagnostic is made
// here, so that none floods a terminal, whatever others wrote: a longer one loses its middle.
func diagnostic(summary string, paragraphs ...string) Diagnostic {
	detail := join(paragraphs...)
	if most := maxText - len(summary); len(detail) > most {
		start, end := detail[:most-maxEnd-len("…")], detail[len(detail)-maxEnd:]
		detail = strings.ToValidUTF8(start, "") + "…" + strings.ToValidUTF8(end, "")
	}
	return Diagnostic{summary, detail}
}

// join joins paragraphs, without empty ones.
func join(paragraphs ...string) string {
	return strings.Join(slices.DeleteFunc(paragraphs, func(text string) bool { return text == "" }), "\n\n")
}

// Text is a diagnostic as users read it: the summary, a line break and the detail. What only a call
// knows stands in braces.
type Text string

// with fills in values, each after its name in braces.
func (t Text) with(values ...string) Diagnostic {
	summary, detail, _ := strings.Cut(string(t), "\n")
	return diagnostic(summary, strings.Split(strings.NewReplacer(values...).Replace(detail), "\n\n")...)
}

// Job is what a text says about a job.
type Job struct {
	ID, Project, Status, PRLink string
	// RefusedMessage: it refused a message after it had finished.
	RefusedMessage bool
}

// String is how texts name the job.
func (j Job) String() string { return j.ID + " in project " + j.Project }

// Of returns the diagnostic about a job. err may be nil.
func (t Text) Of(job Job, err error) Diagnostic { return t.about(job, err, "") }

// about is Of for a text with more values, and how to start another job in the place of this one. Its
// last request is empty if no journal has it.
func (t Text) about(job Job, err error, request string, more ...string) Diagnostic {
	closed, link := "has the status "+Quote(job.Status)+" and cannot accept messages", noLink
	if job.RefusedMessage {
		closed = "refused a message after it had finished"
	}
	if job.PRLink != "" {
		link = "Its pull request: " + job.PRLink
	}
	return t.with(append(more, "{job}", job.String(), "{id}", job.ID, "{project}", job.Project, "{status}", Quote(job.Status),
		"{closed}", closed, "{link}", link, "{cause}", cause(err), "{another}", startAnother(request))...)
}

// Sentence turns an error into a sentence; nil and an empty one become "". It escapes the
// text, because errors quote what others wrote.
func Sentence(err error) string {
	if err == nil || err.Error() == "" {
		return ""
	}
	text := strings.ReplaceAll(err.Error(), "\n", "; ") // errors.Join puts them between errors
	text = escape.All(strings.TrimSuffix(text, "."))    // a service's message can end in one
	first, width := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[width:] + "."
}

// Quote shows foreign text: escaped, cut, in quotation marks.
func Quote(text string) string { return `"` + escape.Printable(text) + `"` }

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

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
