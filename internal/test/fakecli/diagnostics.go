// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package fakecli

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// beforeSending matches the summaries of what a plan says before anything can be sent.
var beforeSending = regexp.MustCompile(`^(Invalid |Missing |Agent provider not configured)`)

// questions are what each other diagnostic answers.
var questions = map[string]*regexp.Regexp{
	"to which job or project":   regexp.MustCompile(`(?i)\b(job|project|journal|the name) .*\w|while planning`),
	"whether anything was sent": regexp.MustCompile(`(?i)\b(sent|sends?|sending|accepted|refused|started|starts a (new|second) job)\b`),
	"what to do next":           regexp.MustCompile(`(?i)\b(apply|check|set|look|import|plan|remove|report|run|give|add)\b`),
}

// check fails the test if a diagnostic of a call that may send something leaves a question open, or has the key, or a character that
// could control the terminal.
func (c *CLI) check(d *tfprotov6.Diagnostic, maySend bool) {
	c.T.Helper()
	text := Text([]*tfprotov6.Diagnostic{d})
	c.searchForKey("a diagnostic", []byte(text))
	for question, answer := range questions {
		if maySend && !beforeSending.MatchString(d.Summary) && !answer.MatchString(d.Detail) {
			c.T.Errorf("it does not say %s: %s", question, text)
		}
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		c.T.Errorf("not escaped: %q", text)
	}
}
