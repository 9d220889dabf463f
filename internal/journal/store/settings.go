// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
)

// settings lead to a bucket: those of the CLI's backend, or the parameters of a URL. What is set and
// nobody has read is an error, because a guess could keep the journal where no later run looks.
type settings struct {
	values map[string]any // only what is set
	read   map[string]bool
}

func newSettings(values map[string]any) *settings {
	values = maps.Clone(values)
	maps.DeleteFunc(values, func(_ string, value any) bool { return isUnset(value) })
	return &settings{values, map[string]bool{}}
}

// isUnset removes what is unset in a value too.
func isUnset(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		maps.DeleteFunc(value, func(_ string, value any) bool { return isUnset(value) })
		return len(value) == 0
	}
	return false
}

// text returns a setting, or else the first of the environment variables that is set.
func (s *settings) text(name string, variables ...string) string {
	s.read[name] = true
	if text, ok := s.values[name].(string); ok {
		return text
	}
	for _, variable := range variables {
		if text := os.Getenv(variable); text != "" {
			return text
		}
	}
	return ""
}

// is reports whether a switch is on, which it usually is or is not.
func (s *settings) is(name string, usually bool, variables ...string) bool {
	if value, ok := s.values[name].(bool); ok {
		s.read[name] = true
		return value
	}
	if value, err := strconv.ParseBool(s.text(name, variables...)); err == nil {
		return value
	}
	return usually
}

// decode reads a setting that is an object or a list. It returns false if it is not set.
func (s *settings) decode(name string, into any) (ok bool, _ error) {
	s.read[name] = true
	value, ok := s.values[name]
	if !ok {
		return false, nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return false, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if decoder.Decode(into) != nil { // its error may show a value
		return false, unsupported(name)
	}
	return true, nil
}

// ignore names settings that change nothing for a journal.
func (s *settings) ignore(names ...string) {
	for _, name := range names {
		s.read[name] = true
	}
}

// refuse names environment variables that the backend reads, and a journal does not.
func refuse(variables ...string) error {
	for _, variable := range variables {
		if os.Getenv(variable) != "" {
			return fmt.Errorf("the journal cannot use the environment variable %s", variable)
		}
	}
	return nil
}

// unread returns an error for what is set and was not read.
func (s *settings) unread() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.values)) {
		if !s.read[name] && s.values[name] != false {
			errs = append(errs, unsupported(name))
		}
	}
	return errors.Join(errs...)
}

func unsupported(name string) error {
	return fmt.Errorf("the journal cannot use the setting %s, or a part of it", name)
}
