// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package wording has what the diagnostics of several packages are made of.
package wording

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
)

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

// AddMissing adds the error about a required value that is not set.
func AddMissing(diags *diag.Diagnostics, attribute, variable, what string) {
	diags.AddAttributeError(path.Root(attribute), "Missing "+attribute,
		fmt.Sprintf("The provider requires %s. Set %s in the provider block, or the environment variable %s.", what, attribute, variable))
}
