// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"slices"
	"strings"
)

// isRunner reports whether a pipeline runs, whose disk usually does not outlive it. Not all of them
// set CI.
func isRunner(getenv func(string) string) bool {
	return slices.ContainsFunc([]string{
		"CI", "TF_IN_AUTOMATION", "TF_BUILD", "JENKINS_URL", "TEAMCITY_VERSION", "CODEBUILD_BUILD_ID", "ATLANTIS_TERRAFORM_VERSION",
		"TFC_RUN_ID", "TF_VAR_spacelift_run_id", "ENV0_ENVIRONMENT_ID", "SCALR_RUN_ID",
	}, func(variable string) bool {
		value := getenv(variable)
		return value != "" && !strings.EqualFold(value, "false")
	})
}
