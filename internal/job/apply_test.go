// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// BenchmarkApply is what it costs to write the service's record into the model.
func BenchmarkApply(b *testing.B) {
	text := "https://git.example.com/docs/pull/1"
	job := &agentapi.Job{
		ID: "job_1", Status: agentapi.StatusCompleted, Model: &text, PRLink: &text, CreatedAt: &text,
		Source: &agentapi.Source{Repository: &text, Ref: &text},
	}
	b.ReportAllocs()
	for b.Loop() {
		var m jobModel
		if diags := m.apply(job); len(diags) > 0 {
			b.Fatal(diags)
		}
	}
}
