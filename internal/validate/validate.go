// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package validate has the validators that several packages need.
package validate

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// Rule is a validator of texts: Summary heads the diagnostic when Check
// returns the detail of one.
type Rule struct {
	Summary, Accepts string
	Check            func(text string) (problem string)
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
	if problem := r.Check(req.ConfigValue.ValueString()); problem != "" {
		resp.Diagnostics.AddAttributeError(req.Path, r.Summary, problem)
	}
}

// IDRule describes what agentapi.ValidID accepts.
const IDRule = "1 to 256 letters, digits and the characters -._~!$&'()*+,;=:@, without \"..\""

// ID accepts what can be one segment of the service's paths.
func ID() validator.String {
	return Rule{Summary: "Invalid id", Accepts: IDRule, Check: func(text string) string {
		if agentapi.ValidID(text) {
			return ""
		}
		return InvalidID(text)
	}}
}

// InvalidID describes a text that is not a valid id.
func InvalidID(text string) string {
	return fmt.Sprintf("%s is not a valid id of a project or a job: it must be %s.",
		wording.Quote(text), IDRule)
}
