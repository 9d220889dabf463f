// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package plugin

import (
	"errors"
	"os"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/provider"
)

// silenceUnreadLog turns the plugin's loggers off when nobody has asked for a
// log. By default they format every trace and leave it to the CLI to drop it:
// most of the CPU of a refresh.
func silenceUnreadLog() error {
	const envSDKLog = "TF_LOG_SDK"
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, envSDKLog) {
			return nil // somebody debugs the SDK
		}
	}
	if provider.LogRequested() {
		return nil
	}
	return errors.Join(os.Setenv(envSDKLog, "off"), os.Setenv(provider.EnvLog, "off"))
}
