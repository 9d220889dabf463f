// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package settings reads what leads to a bucket: the backend's settings, or a URL's parameters.
package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Settings lead to a bucket: those of the CLI's backend, or the parameters of a URL. What is set
// and nobody has read is an error, because a guess could keep the journal where no later run looks.
type Settings struct {
	values map[string]any // only what is set
	read   map[string]bool
}

// New takes the settings of the CLI's backend, or the parameters of a URL.
func New(values map[string]any) *Settings {
	return &Settings{onlySet(values), map[string]bool{}}
}

// JournalName ends the prefix of a journal that is kept beside a state: it follows the key of the
// default workspace's state, or the folder of all states.
const JournalName = "agent-journal/"

// Required returns a setting without which nothing can be found.
func (s *Settings) Required(name string) (string, error) {
	if text := s.Text(name); text != "" {
		return text, nil
	}
	return "", fmt.Errorf("the backend's settings lack %s", name)
}

// onlySet leaves out null and empty values: the CLI writes every setting that a backend has.
func onlySet(values map[string]any) map[string]any {
	set := map[string]any{}
	for name, value := range values {
		switch v := value.(type) {
		case map[string]any:
			set[name] = onlySet(v) // although it may be empty: that there is a block at all can mean something
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

// Text returns a setting, or else the first of the environment variables that is set.
func (s *Settings) Text(name string, variables ...string) string {
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

// Bool returns a setting that is true or false, or else the first of the environment variables that
// is set, or else the default. Anything but true and false stays unread, so Unread returns an error.
func (s *Settings) Bool(name string, byDefault bool, variables ...string) bool {
	if value, ok := s.values[name].(bool); ok {
		s.read[name] = true
		return value
	}
	value, err := strconv.ParseBool(s.Text(name, variables...))
	if err != nil {
		delete(s.read, name)
		return byDefault
	}
	return value
}

// Decode reads a setting that is an object or a list. It returns false if it is not set.
func (s *Settings) Decode(name string, into any) (ok bool, _ error) {
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
		return false, Unsupported(name)
	}
	return true, nil
}

// ExpandHome does what a shell does with a path in the home folder.
func ExpandHome(file string) string {
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return file
}

// Ignore names settings that change nothing for a journal.
func (s *Settings) Ignore(names ...string) {
	for _, name := range names {
		s.read[name] = true
	}
}

// Refuse returns an error if one of these environment variables is set: a backend reads them, and
// a journal cannot honour them.
func Refuse(variables ...string) error {
	for _, variable := range variables {
		if os.Getenv(variable) != "" {
			return fmt.Errorf("the journal cannot use the environment variable %s", variable)
		}
	}
	return nil
}

// Unread returns an error for what is set and was not read.
func (s *Settings) Unread() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.values)) {
		if !s.read[name] && s.values[name] != false {
			errs = append(errs, Unsupported(name))
		}
	}
	return errors.Join(errs...)
}

// Unsupported is the error for a setting that a journal cannot honour.
func Unsupported(name string) error {
	return fmt.Errorf("the journal cannot use the setting %s, or a part of it", name)
}

// ErrEndpoint reports an endpoint that no signed request may be sent to.
var ErrEndpoint = errors.New("the endpoint of the journal's store must be an absolute https URL without user, query and fragment, " +
	"or http for a loopback address")

// CheckEndpoint checks where signed requests go. Empty means the cloud itself. mayBeOpen allows http
// for other addresses than those of this machine, too.
func CheckEndpoint(text string, mayBeOpen bool) error {
	endpoint, err := url.Parse(text)
	switch {
	case text == "":
		return nil
	case err != nil, endpoint.Hostname() == "", endpoint.User != nil, endpoint.RawQuery != "", endpoint.Fragment != "":
		return ErrEndpoint
	case endpoint.Scheme != "https" && (endpoint.Scheme != "http" || !mayBeOpen && !IsLoopback(endpoint.Hostname())):
		return ErrEndpoint
	}
	return nil
}

// IsLoopback reports whether a host is this machine, which needs no encryption.
func IsLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
