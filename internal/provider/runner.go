// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import "strings"

// runners are known by a variable that they set, and say where a journal outlives one of their runs. The first one counts.
//
//nolint:gochecknoglobals // never changed
var runners = []struct{ variable, advice string }{
	{"TFC_RUN_ID", "HCP Terraform keeps no file of a run: use a bucket, with its credentials in the variables of the workspace."},
	{"TF_VAR_spacelift_run_id", "Spacelift: use a bucket, which a cloud integration of the stack can write to."},
	{"ENV0_ENVIRONMENT_ID", "env0: use a bucket, which the cloud credentials of the project can write to."},
	{"SCALR_RUN_ID", "Scalr: use a bucket, which a provider configuration or a variable has the credentials for."},
	{"ATLANTIS_TERRAFORM_VERSION", "Atlantis: use a bucket, or a folder on the disk of its server, outside its data folder."},
	{"JENKINS_URL", "Jenkins: use a bucket, or a folder that all agents mount."},
	{"TEAMCITY_VERSION", "TeamCity: use a bucket, or a folder that all agents mount."},
	{"CODEBUILD_BUILD_ID", "CodeBuild: use a bucket, which the service role of the project can write to."},
	{"TF_BUILD", "Azure Pipelines: use a bucket or a container, which the service connection can write to."},
	{"CI", "Use a bucket, or a folder that outlives the runner."},
	{"TF_IN_AUTOMATION", "Use a bucket, or a folder that outlives this machine."},
}

// runnerAdvice says what to do about a journal in the working directory of a pipeline, which usually does not outlive it. It is
// empty where no pipeline runs.
func runnerAdvice(getenv func(string) string) string {
	for _, runner := range runners {
		if value := getenv(runner.variable); value != "" && !strings.EqualFold(value, "false") {
			return runner.advice
		}
	}
	return ""
}
