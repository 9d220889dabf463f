// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

type (
	attrs   = fakecli.Attrs
	unknown = fakecli.Unknown
)

// apply is a whole apply in a process of its own.
func apply(t *testing.T, c *fakecli.CLI, run journal.Run, config, job attrs) []*tfprotov6.Diagnostic {
	t.Helper()
	process := journal.NewProcess(run, func(err error) { t.Error(err) })
	defer process.Close(t.Context())
	c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: process}), config)
	return c.Run(t.Context(), job)
}
