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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// settings lead to a bucket: those of the CLI's backend, or the parameters of a URL. What is set and
// nobody has read is an error, because a guess could keep the journal where no later run looks.
type settings struct {
	values map[string]any // only what is set
	read   map[string]bool
}

func newSettings(values map[string]any) *settings {
	return &settings{onlySet(values), map[string]bool{}}
}

// onlySet returns what is set: the CLI writes every setting that a backend has, and null if it is not set.
func onlySet(values map[string]any) map[string]any {
	set := map[string]any{}
	for name, value := range values {
		switch v := value.(type) {
		case map[string]any:
			if v = onlySet(v); len(v) > 0 {
				set[name] = v
			}
		case []any:
			if len(v) > 0 {
				set[name] = v
			}
		default:
			if v != nil && v != "" {
				set[name] = v
			}
		}
	}
	return set
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

// is reports whether a switch is on; usually is the default.
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

// expandHome does what a shell does with a path in the home folder.
func expandHome(file string) string {
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return file
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
