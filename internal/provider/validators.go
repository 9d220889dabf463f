// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

func validBaseURL() validator.String {
	return check.Rule{
		Summary: wording.InvalidBaseURL,
		Accepts: "an absolute https URL, or http for a loopback address, without user, query and fragment",
		Check: func(text string) error {
			_, err := parseBaseURL(text)
			return err
		},
	}
}

func validKey() validator.String {
	return check.Rule{Summary: wording.InvalidKey, Accepts: "not empty, printable ASCII without spaces", Check: checkKey}
}

// parseBaseURL checks where the key may be sent. Its errors never repeat the text,
// which may contain a password.
func parseBaseURL(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	switch {
	case strings.Trim(text, " \t\r\n\"'") != text:
		return nil, errors.New("the base URL starts or ends with a space, a line break or a quotation mark")
	case err != nil:
		return nil, errors.New("the base URL is not a valid URL: it must be absolute, like https://api.example.com")
	case base.Scheme != "https" && base.Scheme != "http" || base.Hostname() == "":
		return nil, errors.New("the base URL must be absolute, like https://api.example.com")
	case base.User != nil:
		return nil, errors.New("the base URL must not contain a user name or password: set the key in admin_key")
	case base.RawQuery != "" || base.ForceQuery || base.Fragment != "" || strings.Contains(text, "#"):
		return nil, errors.New("the base URL must not have a query or a fragment")
	case base.Scheme == "http" && !settings.IsLoopback(base.Hostname()):
		return nil, errors.New("the base URL must start with https:// because the key would be sent unencrypted; " +
			"http:// is accepted for loopback addresses only")
	}
	return base, nil
}

// checkKey finds what can never be sent in a header, without showing the key.
func checkKey(key string) error {
	switch {
	case strings.TrimSpace(key) == "":
		return errors.New("the key is empty")
	case strings.TrimSpace(key) != key:
		return errors.New("the key starts or ends with a space or a line break, as keys read from a file often do: " +
			"remove it, in a configuration with trimspace()")
	case strings.Trim(key, `"'`) != key:
		return errors.New("the key starts or ends with a quotation mark: remove it")
	case strings.HasPrefix(strings.ToLower(key), "bearer "):
		return errors.New(`the key starts with "Bearer": remove that, the provider adds it`)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("the key contains a space, a control character or a non-ASCII character, which no API key does")
	}
	return nil
}

// validRequestID accepts what an error names as the id of a request.
func validRequestID() validator.String {
	return check.Rule{Summary: wording.InvalidID, Accepts: "the id of a request", Check: func(text string) error {
		if journal.ValidID(text) {
			return nil
		}
		return fmt.Errorf("%s is not the id of a request: copy it from the error that names it", wording.Quote(text))
	}}
}

// validDuration accepts a Go duration that is at least the shortest.
func validDuration(shortest time.Duration) validator.String {
	rule := fmt.Sprintf("a duration like \"90s\" or \"1h30m\", at least %s", shortest)
	return check.Rule{Summary: wording.InvalidDuration, Accepts: rule, Check: func(text string) error {
		if d, err := time.ParseDuration(text); err == nil && d >= shortest {
			return nil
		}
		return fmt.Errorf("%s is not %s", wording.Quote(text), rule)
	}}
}
