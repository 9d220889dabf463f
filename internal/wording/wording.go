// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package wording has what the diagnostics of several packages are made of.
package wording

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
)

// Paragraphs makes the detail of a diagnostic, leaving out empty paragraphs.
func Paragraphs(paragraphs ...string) string {
	kept := paragraphs[:0:0]
	for _, paragraph := range paragraphs {
		if paragraph != "" {
			kept = append(kept, paragraph)
		}
	}
	return strings.Join(kept, "\n\n")
}

// Sentence makes an error the detail of a diagnostic; nil and an empty one have none.
func Sentence(err error) string {
	if err == nil || err.Error() == "" {
		return ""
	}
	text := strings.TrimSuffix(err.Error(), ".") // of a service
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// Quote shows text that is not ours: escaped, cut, in quotation marks.
func Quote(text string) string { return `"` + escape.Printable(text) + `"` }

// AddMissing words an attribute that is set nowhere.
func AddMissing(diags *diag.Diagnostics, attribute, variable, what string) {
	diags.AddAttributeError(path.Root(attribute), "Missing "+attribute,
		fmt.Sprintf("The provider needs %s. Set %s in the provider block, or the environment variable %s.", what, attribute, variable))
}
