// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// masked replaces the key wherever it would be printed. It is no valid id.
const masked = "(sensitive value)"

// Key is an admin API key. It cannot be printed: not by fmt, not by an
// encoder, and not through reflection, because closures hold the text.
type Key struct {
	reveal func() string
	mask   func(text string) string // removes the key from text, because a service may echo what it was sent
}

// NewKey wraps the text of an admin API key.
func NewKey(text string) Key {
	// JSON may escape each character, also in a text that is no whole JSON, or in one within
	// another. net/http escapes quotation marks and backslashes when it quotes what it cannot read.
	var spellings strings.Builder
	for _, r := range text {
		fmt.Fprintf(&spellings, `(?:\\?%s|\\u(?i:%04x))`, regexp.QuoteMeta(string(r)), r)
	}
	pattern := regexp.MustCompile(spellings.String())
	return Key{
		reveal: func() string { return text },
		mask: func(shown string) string {
			switch {
			case text == "":
				return shown
			case !strings.Contains(shown, `\`):
				return strings.ReplaceAll(shown, text, masked)
			}
			return pattern.ReplaceAllLiteralString(shown, masked)
		},
	}
}

// maskError removes the key from an error: net/http quotes what a server sent.
func (k Key) maskError(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if shown := k.mask(text); shown != text {
		return errors.New(shown)
	}
	return err
}

// shortestSecret is the length from which a key is masked in a value of a response: a shorter one
// may be part of a legitimate value.
const shortestSecret = 8

// text returns a text in a response, without the key and the white space around it. What says
// nothing is nil: an empty text, null, and another type.
func (k Key) text(raw json.RawMessage) *string {
	var decoded string
	if len(raw) == 0 || json.Unmarshal(raw, &decoded) != nil {
		return nil
	}
	if len(k.reveal()) >= shortestSecret {
		decoded = k.mask(decoded)
	}
	if decoded = strings.TrimSpace(decoded); decoded == "" {
		return nil
	}
	return &decoded
}
