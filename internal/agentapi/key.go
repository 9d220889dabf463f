// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"errors"
	"strconv"
	"strings"
)

// masked replaces the key wherever it would be printed.
const masked = "(sensitive)"

// Key is an admin API key. It cannot be printed: not by fmt, not by an
// encoder, and not through reflection, because a closure holds the text.
type Key struct{ reveal func() string }

// NewKey wraps the text of an admin API key.
func NewKey(text string) Key { return Key{reveal: func() string { return text }} }

// String hides the key.
func (Key) String() string { return masked }

// GoString hides the key from the %#v verb.
func (Key) GoString() string { return masked }

// MarshalText hides the key from encoders.
func (Key) MarshalText() ([]byte, error) { return []byte(masked), nil }

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

// maskError removes the key from an error: net/http quotes what a server sent,
// and so does a refused job id.
func (k Key) maskError(err error) error {
	if id, ok := errors.AsType[*badIDError](err); ok {
		return &badIDError{k.mask(id.id)} // before the text is cut
	}
	if err == nil {
		return nil
	}
	text := err.Error()
	if shown := k.mask(text); shown != text {
		return errors.New(shown)
	}
	return err
}

// shortestSecret is the length from which a key is masked in a record: a shorter
// one may be part of a legitimate value.
const shortestSecret = 8

// isIn reports whether text repeats the key.
func (k Key) isIn(text string) bool {
	return !k.isEmpty() && len(k.reveal()) >= shortestSecret && strings.Contains(text, k.reveal())
}

// scrub removes the key from a record that echoes it, because a record goes
// into the state.
func (k Key) scrub(job *Job) {
	if k.isIn(string(job.Status)) {
		job.Status = Status(k.mask(string(job.Status)))
	}
	texts := []*string{job.Model, job.PRLink, job.CreatedAt, job.ArchivedAt}
	if job.Source != nil {
		texts = append(texts, job.Source.Repository, job.Source.Ref)
	}
	for _, text := range texts {
		if text != nil && k.isIn(*text) {
			*text = k.mask(*text)
		}
	}
}
