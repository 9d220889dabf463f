// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

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
