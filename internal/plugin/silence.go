// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package plugin

import (
	"errors"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/provider"
)

// silenceUnreadLog turns the plugin's loggers off unless a log was requested. By
// default they format every trace and the CLI drops it: most of the CPU of a refresh.
func silenceUnreadLog() error {
	const envSDKLog = "TF_LOG_SDK"
	debugsSDK := slices.ContainsFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, envSDKLog) })
	if debugsSDK || provider.LogRequested() {
		return nil
	}
	log.SetOutput(io.Discard) // libraries of the stores write to it
	return errors.Join(os.Setenv(envSDKLog, "off"), os.Setenv(provider.EnvLog, "off"))
}
