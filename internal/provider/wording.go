// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// say makes the detail of a diagnostic from sentences, leaving out empty ones.
func say(sentences ...string) string {
	kept := sentences[:0:0]
	for _, sentence := range sentences {
		if sentence != "" {
			kept = append(kept, sentence)
		}
	}
	return strings.Join(kept, "\n\n")
}

// sentence makes an error the detail of a diagnostic; nil has none.
func sentence(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// quoted shows text that is not ours: escaped, cut, in quotation marks.
func quoted(text string) string { return `"` + agentapi.Printable(text) + `"` }

// addMissing words an attribute that is set nowhere.
func addMissing(diags *diag.Diagnostics, attribute, variable, what string) {
	diags.AddAttributeError(path.Root(attribute), "Missing "+attribute,
		fmt.Sprintf("The provider needs %s. Set %s in the provider block, or the environment variable %s.", what, attribute, variable))
}
