// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import (
	"errors"
	"testing"
)

func TestSentence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                    "",
		"no such job":         "No such job.",
		"no such job.":        "No such job.",
		"über":                "Über.",
		"\x1b[2Ja\u202eb":     `\u001b[2Ja\u202eb.`,
		"one error\nanother":  "One error; another.",
		"one error\r\nb\x00c": `One error\u000d; b\u0000c.`,
	} {
		if got := Sentence(errors.New(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
