// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import (
	"fmt"

	"github.com/agentjobs/terraform-provider-agent/internal/send"
)

// Invalid is the summary of a problem with a value.
type Invalid string

// The values that are checked.
const (
	InvalidBaseURL      Invalid = "Invalid base URL"
	InvalidKey          Invalid = "Invalid admin key"
	InvalidID           Invalid = "Invalid id"
	InvalidPrompt       Invalid = "Invalid prompt"
	InvalidDuration     Invalid = "Invalid duration"
	InvalidCertificates Invalid = "Invalid CA certificates"
	InvalidJournalURL   Invalid = "Invalid journal URL"
)

// Because describes the problem that a check has found; more follows it.
func (i Invalid) Because(err error, more ...string) Diagnostic {
	return diagnostic(string(i), append([]string{Sentence(err)}, more...)...)
}

// OtherBaseURL describes a base_url that differs from the environment's, while the key comes from
// there: the key of one service would be sent to another.
func OtherBaseURL(variable string) Diagnostic {
	return diagnostic(string(InvalidBaseURL),
		"base_url is not the URL in the environment variable "+variable+", and this provider block has no key. "+
			"The key of the environment is sent to the service of the environment only. Nothing was sent.",
		"Remove base_url, or set admin_key in the same provider block to the key of this service.")
}

// IDRule describes what agentapi.ValidID accepts.
const IDRule = "1 to 256 letters, digits, dots, hyphens and underscores, without \"..\""

// NameMissing describes a request without a name: ignore_changes hides the name from a job that was
// imported without one.
func NameMissing(r send.Request) Diagnostic {
	text := notCreated
	if r.Kind() == send.Message {
		text = notAccepted
	}
	text += "The resource has no name, so its prompt was not sent to {target}.\n\nSet name, and remove it from ignore_changes."
	return text.with("{target}", target(r))
}

// DuplicateName describes two resources with one name, and the jobs of both, if they have any.
func DuplicateName(name, projectID, job, otherJob string) Diagnostic {
	other, next := "Another resource", "Set a different name for each, for example with each.key or count.index in it."
	if otherJob != "" {
		other += ", with job " + otherJob + ","
	}
	if job != "" && job == otherJob {
		next = "Import a job into one resource only."
	}
	return diagnostic("Duplicate agent job name",
		fmt.Sprintf("%s has the name %s in project %s. The prompt of this one was not sent.", other, Quote(name), projectID), next)
}

// BadLimit describes an environment variable that is not a limit.
func BadLimit(variable, text string) Diagnostic {
	return diagnostic("Invalid limit", fmt.Sprintf(
		"The environment variable %s is %s. It must be a whole number, 0 or more.", variable, Quote(text)))
}

// UnknownJournalSettings describes settings that the plan must know.
func UnknownJournalSettings(envURL, envForget string) Diagnostic {
	return diagnostic("Unknown journal settings", "The plan must know journal.enabled, journal.url and journal.forget. "+
		"Use values that do not depend on resources, or the environment variables "+envURL+" and "+envForget+".")
}

// NotConfigured describes a call before the provider's configuration is known.
func NotConfigured() Diagnostic {
	return diagnostic(summaryNotConfigured,
		"The provider's configuration is not known yet, so the service cannot be called. Nothing was sent.", makeKnown)
}

// Missing describes a required value that is not set.
func Missing(attribute, variable, what string) Diagnostic {
	return diagnostic("Missing "+attribute, fmt.Sprintf(
		"The provider requires %s. Nothing was sent. Set %s in the provider block, or the environment variable %s.", what, attribute, variable))
}
