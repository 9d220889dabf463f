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

// known returns the text of an attribute that can be checked already.
func known(req validator.StringRequest) (string, bool) {
	return req.ConfigValue.ValueString(), !req.ConfigValue.IsNull() && !req.ConfigValue.IsUnknown()
}

// sentence makes an error the detail of a diagnostic.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

type baseURLValidator struct{}

func (baseURLValidator) Description(context.Context) string {
	return "an absolute https URL, or http on a loopback address, without user, query and fragment"
}

func (v baseURLValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (baseURLValidator) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if text, ok := known(req); ok {
		if _, err := parseBaseURL(text); err != nil {
			resp.Diagnostics.AddAttributeError(req.Path, "Invalid base URL", sentence(err))
		}
	}
}

type keyValidator struct{}

func (keyValidator) Description(context.Context) string {
	return "not empty, printable ASCII without spaces"
}

func (v keyValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (keyValidator) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if text, ok := known(req); ok {
		if err := checkKey(text); err != nil {
			resp.Diagnostics.AddAttributeError(req.Path, "Invalid admin key", sentence(err))
		}
	}
}

// idRule says in words what agentapi.ValidID accepts.
const idRule = "1 to 256 letters, digits and the characters -._~!$&'()*+,;=:@, without \"..\""

// idValidator accepts what can stand as one segment of the service's paths.
type idValidator struct{}

func (idValidator) Description(context.Context) string {
	return idRule
}

func (v idValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (idValidator) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if text, ok := known(req); ok && !agentapi.ValidID(text) {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid id", invalidID(text))
	}
}

func invalidID(text string) string {
	return fmt.Sprintf("%s cannot be the id of a project or a job: it must have %s.",
		quoted(text), idRule)
}

// promptValidator refuses what the service could not use as an instruction.
type promptValidator struct{}

func (promptValidator) Description(context.Context) string {
	return "not empty or only white space, valid UTF-8 without NUL"
}

func (v promptValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (promptValidator) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	text, ok := known(req)
	if !ok {
		return
	}
	if err := checkPrompt(text); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid prompt", sentence(err))
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

// durationValidator accepts Go's form of a duration from a shortest one on.
type durationValidator struct{ atLeast time.Duration }

func (v durationValidator) Description(context.Context) string {
	return fmt.Sprintf("a duration like \"90s\" or \"1h30m\", at least %s", v.atLeast)
}

func (v durationValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v durationValidator) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	text, ok := known(req)
	if !ok {
		return
	}
	if d, err := time.ParseDuration(text); err != nil || d < v.atLeast {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid duration",
			fmt.Sprintf("%s is not %s.", quoted(text), v.Description(ctx)))
	}
}
