// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"context"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// Getter retrieves a job, trying again for as long as it may; *agentapi.Client is one.
type Getter interface {
	GetJob(ctx context.Context, projectID, jobID string) (*agentapi.Job, error)
}

// MessageEffect looks, every interval for the length of Settle, for the effect
// of a message on a job that had ended: it is active again. It returns the
// record that shows it, or nil.
func MessageEffect(ctx context.Context, getter Getter, projectID, jobID string, interval time.Duration) *agentapi.Job {
	ctx, cancel := context.WithTimeout(ctx, Settle)
	defer cancel()
	for {
		record, err := getter.GetJob(ctx, projectID, jobID)
		if err != nil {
			return nil
		}
		if record.Status == agentapi.StatusActive {
			return record
		}
		if sleep.For(ctx, interval) != nil {
			return nil
		}
	}
}
