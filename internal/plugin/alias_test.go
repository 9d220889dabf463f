// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package plugin_test

import "github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"

type attrs = fakecli.Attrs
