// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

// masked replaces the key wherever it would be printed. It is no valid id.
const masked = "(sensitive value)"

// Key is an admin API key. It cannot be printed: not by fmt, not by an
// encoder, and not through reflection, because a closure holds the text.
type Key struct{ reveal func() string }

// NewKey wraps the text of an admin API key.
func NewKey(text string) Key { return Key{reveal: func() string { return text }} }

func (k Key) isEmpty() bool { return k.reveal == nil || k.reveal() == "" }

// mask removes the key from text, because a service may echo what it was sent,
// also as net/http quotes it: with a backslash before each quotation mark and
// backslash of the key.
func (k Key) mask(text string) string {
	if k.isEmpty() {
		return text
	}
	key := k.reveal()
	quoted := strconv.Quote(key)
	return strings.NewReplacer(key, masked, quoted[1:len(quoted)-1], masked).Replace(text)
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

// shortestSecret is the length from which a key is masked in a response: a shorter one
// may be part of a legitimate value.
const shortestSecret = 8

// maskBody removes the key from a response, before anything is read from it.
func (k Key) maskBody(body []byte) []byte {
	if k.isEmpty() || len(k.reveal()) < shortestSecret {
		return body
	}
	return bytes.ReplaceAll(body, []byte(k.reveal()), []byte(masked))
}
