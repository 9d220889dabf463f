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

// What each other diagnostic says, and last of all what to do next: in the imperative, or what a command will do.
var (
	subject  = regexp.MustCompile(`(?i)\b(job|project|journal|the name) .*\w|while planning`)
	sending  = regexp.MustCompile(`(?i)\b(sent|sends?|sending|accepted|refused|started|starts a (new|second) job)\b`)
	nextStep = regexp.MustCompile(`(?im)(^|[.:;,] |\b(first|please|and|or) )(apply|check|set|import|plan|change|remove|report|run|use|write)\b|` +
		`\bfirst look\b|\bnext (plan|apply)\b|\brunning the action again|\bapply (resumes )?wait|\bcannot cancel a job|\bsays what to do`)
)

// leftovers are what a text has if a value is missing in it.
var leftovers = regexp.MustCompile(`%!|0001-01-01|<nil>|\b(job|name|project|request|status) ""|\bjob  | \.(\s|$)|[a-z]\.\.(\s|$)|\n$`)

// check fails the test if a diagnostic of a call that may send something leaves a question open, or has the key, or a character that
// could control the terminal.
func (c *CLI) check(d *tfprotov6.Diagnostic, maySend bool) {
	c.T.Helper()
	text := Text([]*tfprotov6.Diagnostic{d})
	c.searchForKey("a diagnostic", []byte(text))
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		c.T.Errorf("not escaped: %q", text)
	}
	if !maySend || beforeSending.MatchString(d.Summary) {
		return
	}
	last := d.Detail[strings.LastIndex(d.Detail, "\n\n")+1:]
	for question, isAnswered := range map[string]bool{
		"to which job or project": subject.MatchString(d.Detail), "whether anything was sent": sending.MatchString(d.Detail),
		"what to do next": nextStep.MatchString(last),
	} {
		if !isAnswered {
			c.T.Errorf("it does not say %s: %s", question, text)
		}
	}
	if leftovers.MatchString(d.Detail) || strings.HasSuffix(d.Summary, ".") {
		c.T.Errorf("a value is missing: %q", text)
	}
}
