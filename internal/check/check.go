// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package check checks what a configuration says, and reports what is wrong at its attribute.
package check

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// Rule is a validator of texts: Summary heads the diagnostic of an error that Check returns.
type Rule struct {
	Summary wording.Invalid
	Accepts string
	Check   func(text string) error
}

// Description says what is accepted.
func (r Rule) Description(context.Context) string { return r.Accepts }

// MarkdownDescription says the same.
func (r Rule) MarkdownDescription(context.Context) string { return r.Accepts }

// ValidateString checks a text that is known.
func (r Rule) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if err := r.Check(req.ConfigValue.ValueString()); err != nil {
		ErrorAt(&resp.Diagnostics, req.Path, r.Summary.Because(err))
	}
}

// ValidID accepts what can be one segment of the service's paths.
func ValidID() validator.String {
	return Rule{Summary: wording.InvalidID, Accepts: wording.IDRule, Check: ID}
}

// ID checks the id of a project or a job.
func ID(text string) error {
	if agentapi.ValidID(text) {
		return nil
	}
	return fmt.Errorf("%s is not a valid id of a project or a job: it must be %s", wording.Quote(text), wording.IDRule)
}

// ErrorAt adds an error about an attribute.
func ErrorAt(diags *diag.Diagnostics, at path.Path, d wording.Diagnostic) {
	diags.AddAttributeError(at, d.Summary, d.Detail)
}

// WarnAt adds a warning about an attribute.
func WarnAt(diags *diag.Diagnostics, at path.Path, d wording.Diagnostic) {
	diags.AddAttributeWarning(at, d.Summary, d.Detail)
}
