// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-version"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

func TestShellEnv(t *testing.T) {
	cli := tfcli.CLI{Path: "/it's here/$tofu", Product: tfcli.Tofu, Version: version.Must(version.NewVersion("1.2.3"))}
	got := shellEnv(cli, []string{"TF_LOG=x", "TF_VAR_a-b=x", "TF_CLI=tofu", "AGENT_ADMIN_KEY=x", "AGENT_TEST_S3=x", "PATH=/bin"})
	want := `unset TF_LOG
unset AGENT_ADMIN_KEY
export CHECKPOINT_DISABLE='1'
export TF_CLI_CONFIG_FILE='` + os.DevNull + `'
export TF_ACC='1'
export TF_ACC_TERRAFORM_PATH='/it'\''s here/$tofu'
export TF_ACC_TERRAFORM_VERSION='1.2.3'
export TF_ACC_PROVIDER_HOST='registry.opentofu.org'
export TF_ACC_PROVIDER_NAMESPACE='hashicorp'
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
