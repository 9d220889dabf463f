// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// sentence makes an error the detail of a diagnostic; nil has none.
func sentence(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// stringRule is a validator of texts: summary heads the diagnostic when check
// returns the detail of one.
type stringRule struct {
	summary, description string
	check                func(text string) (problem string)
}

func (r stringRule) Description(context.Context) string         { return r.description }
func (r stringRule) MarkdownDescription(context.Context) string { return r.description }

func (r stringRule) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if problem := r.check(req.ConfigValue.ValueString()); problem != "" {
		resp.Diagnostics.AddAttributeError(req.Path, r.summary, problem)
	}
}

func validBaseURL() validator.String {
	return stringRule{
		summary:     "Invalid base URL",
		description: "an absolute https URL, or http on a loopback address, without user, query and fragment",
		check: func(text string) string {
			_, err := parseBaseURL(text)
			return sentence(err)
		},
	}
}

func validKey() validator.String {
	return stringRule{
		summary:     "Invalid admin key",
		description: "not empty, printable ASCII without spaces",
		check:       func(text string) string { return sentence(checkKey(text)) },
	}
}

// idRule says in words what agentapi.ValidID accepts.
const idRule = "1 to 256 letters, digits and the characters -._~!$&'()*+,;=:@, without \"..\""

// validID accepts what can stand as one segment of the service's paths.
func validID() validator.String {
	return stringRule{summary: "Invalid id", description: idRule, check: func(text string) string {
		if agentapi.ValidID(text) {
			return ""
		}
		return invalidID(text)
	}}
}

func invalidID(text string) string {
	return fmt.Sprintf("%s cannot be the id of a project or a job: it must have %s.",
		quoted(text), idRule)
}

// validPrompt refuses what the service could not use as an instruction.
func validPrompt() validator.String {
	return stringRule{
		summary:     "Invalid prompt",
		description: "not empty or only white space, valid UTF-8 without NUL",
		check:       func(text string) string { return sentence(checkPrompt(text)) },
	}
}

func checkPrompt(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("the prompt is empty: say what the agent shall do")
	case strings.ContainsRune(text, 0):
		return errors.New("the prompt holds a NUL character")
	case !utf8.ValidString(text):
		return errors.New("the prompt is not valid UTF-8")
	}
	return nil
}

// validDuration accepts Go's form of a duration from a shortest one on.
func validDuration(shortest time.Duration) validator.String {
	rule := fmt.Sprintf("a duration like \"90s\" or \"1h30m\", at least %s", shortest)
	return stringRule{summary: "Invalid duration", description: rule, check: func(text string) string {
		if d, err := time.ParseDuration(text); err == nil && d >= shortest {
			return ""
		}
		return fmt.Sprintf("%s is not %s.", quoted(text), rule)
	}}
}
