// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// Only a job that is unfinished within the settle time shows it.
func TestMessageEffect(t *testing.T) {
	t.Parallel()
	const interval = 3 * time.Second
	for name, tc := range map[string]struct {
		answers answers
		limit   time.Duration
		shown   bool
		gets    int
		took    time.Duration
	}{
		"active at once":        {sequence(active), time.Hour, true, 1, 0},
		"active at the last":    {change(completed, 9*time.Second, active), time.Hour, true, 4, 9 * time.Second},
		"active too late":       {change(completed, Settle+time.Second, active), time.Hour, false, 4, Settle},
		"an unknown status":     {sequence(agentapi.Status("queued")), time.Hour, true, 1, 0},
		"the job is not found":  {sequence(completed, fault404), time.Hour, false, 2, interval},
		"no status, and active": {sequence(noStatus, active), time.Hour, true, 2, interval},
		"cut short":             {sequence(completed, completed, active), time.Second, false, 1, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPoller(tc.answers)
				ctx, cancel := context.WithTimeout(t.Context(), tc.limit)
				defer cancel()
				got := MessageEffect(ctx, p, "p", "job_1", interval)
				if shown := got != nil; shown != tc.shown || len(p.at) != tc.gets || time.Since(p.start) != tc.took {
					t.Errorf("shown %t by %d GETs in %s, want %t by %d in %s", shown, len(p.at), time.Since(p.start), tc.shown, tc.gets, tc.took)
				}
			})
		})
	}
}
