// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/place"
)

const (
	envLog    = "TF_LOG_PROVIDER_AGENT" // the level of this provider's log
	envSDKLog = "TF_LOG_SDK"            // that of the framework's; longer names are of its parts
)

// SilenceUnreadLog turns the plugin's loggers off unless a log was requested. By default they format
// every trace and the CLI drops it: most of the CPU of a refresh.
func SilenceUnreadLog() error {
	debugsSDK := slices.ContainsFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, envSDKLog) })
	if debugsSDK || logRequested() {
		return nil
	}
	log.SetOutput(io.Discard) // libraries of the stores write to it
	return errors.Join(os.Setenv(envSDKLog, "off"), os.Setenv(envLog, "off"))
}

// logRequested reports whether Terraform was asked for a log of its providers.
func logRequested() bool {
	for _, variable := range []string{"TF_LOG", "TF_LOG_PROVIDER", envLog} {
		if level := os.Getenv(variable); level != "" && !strings.EqualFold(level, "off") {
			return true
		}
	}
	return false
}

// keyMask prepares a call's context so that nothing logged with it shows the key, if there is one.
func keyMask(key string) func(context.Context) context.Context {
	if key == "" || !logRequested() {
		return func(ctx context.Context) context.Context { return ctx }
	}
	return func(ctx context.Context) context.Context {
		ctx = tflog.MaskAllFieldValuesStrings(ctx, key)
		ctx = tflog.MaskMessageStrings(ctx, key)
		return tflog.MaskFieldValuesWithFieldKeys(ctx, "Authorization", "authorization", "admin_key")
	}
}

// logDecision writes a decision about a name to Terraform's log.
func logDecision(ctx context.Context, decision, name, jobID string) {
	tflog.Info(ctx, "journal: "+escape.Printable(decision), map[string]any{"name": escape.Printable(name), "job": escape.Printable(jobID)})
}

// logPlace writes where the journal is. Two machines that look for it in different places do not
// see each other's jobs, and the log is where that shows.
func logPlace(ctx context.Context, where place.Place) {
	tflog.Info(ctx, "journal: opened", map[string]any{"place": where.Location.String(), "scope": journal.Hash(where.Scope)})
}

// logExchange writes an HTTP exchange to Terraform's log: sizes and outcome, never a prompt,
// a header or a body.
func logExchange(ctx context.Context, fields map[string]any) {
	tflog.Debug(ctx, "called the agent service", fields)
}
