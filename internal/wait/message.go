// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"context"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// Getter retrieves a job, retrying until ctx ends; *agentapi.Client is one.
type Getter interface {
	GetJob(ctx context.Context, projectID, jobID string) (*agentapi.Job, error)
}

// MessageEffect reads a job that had finished, every interval for the length of
// Settle, to see whether a message made it unfinished again. It returns the record that
// shows this, or nil.
func MessageEffect(ctx context.Context, getter Getter, projectID, jobID string, interval time.Duration) *agentapi.Job {
	ctx, cancel := context.WithTimeout(ctx, Settle)
	defer cancel()
	for {
		record, err := getter.GetJob(ctx, projectID, jobID)
		if err != nil {
			return nil
		}
		if record.Status.Unfinished() {
			return record
		}
		if sleep.For(ctx, interval) != nil {
			return nil
		}
	}
}
