// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package wording has every sentence that a plan or an apply shows: functions from facts to the
// summary and the detail of a diagnostic.
package wording

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
)

// Job is what a text says about a job.
type Job struct {
	ID, Project, Status, PRLink string
	// RefusedMessage: it refused a message after it had finished.
	RefusedMessage bool
}

// String is how texts name the job.
func (j Job) String() string { return j.ID + " in project " + j.Project }

// Text is a diagnostic about one job: the summary, a line break and the detail, with {job}, {id},
// {project}, {status}, {closed} and {cause} for what is only known later.
type Text string

// Of returns the diagnostic about a job. err may be nil.
func (t Text) Of(job Job, err error) (summary, detail string) {
	why := ""
	if err != nil {
		why = cause(err)
	}
	closed := "has the status " + Quote(job.Status) + " and cannot accept messages"
	if job.RefusedMessage {
		closed = "refused a message after it had finished"
	}
	summary, detail, _ = strings.Cut(string(t), "\n")
	return summary, strings.NewReplacer("{job}", job.String(), "{id}", job.ID, "{project}", job.Project,
		"{status}", Quote(job.Status), "{closed}", closed, "{cause}", why).Replace(detail)
}

// Paragraphs joins the paragraphs of a diagnostic's detail, without empty ones.
func Paragraphs(paragraphs ...string) string {
	kept := paragraphs[:0:0]
	for _, paragraph := range paragraphs {
		if paragraph != "" {
			kept = append(kept, paragraph)
		}
	}
	return strings.Join(kept, "\n\n")
}

// Sentence turns an error into a sentence; nil and an empty one become "". It escapes the
// text, because errors quote what others wrote.
func Sentence(err error) string {
	if err == nil || err.Error() == "" {
		return ""
	}
	text := strings.ReplaceAll(err.Error(), "\n", "; ") // between joined errors
	text = escape.All(strings.TrimSuffix(text, "."))    // of a service
	first, width := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[width:] + "."
}

// Quote shows foreign text: escaped, cut, in quotation marks.
func Quote(text string) string { return `"` + escape.Printable(text) + `"` }

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
