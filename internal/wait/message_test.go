// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"testing"
	"testing/synctest"
	"time"
)

// Only a job that is unfinished within the settle time shows it.
func TestMessageEffect(t *testing.T) {
	t.Parallel()
	const interval = 3 * time.Second
	for name, tc := range map[string]struct {
		answers answers
		shown   bool
		gets    int
		took    time.Duration
	}{
		"active at the last":    {change(completed, 9*time.Second, active), true, 4, 9 * time.Second},
		"active too late":       {change(completed, Settle+time.Second, active), false, 4, Settle},
		"the job is not found":  {sequence(completed, fault404), false, 2, interval},
		"no status, and active": {sequence(noStatus, active), true, 2, interval},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPoller(tc.answers)
				got := MessageEffect(t.Context(), p, "p", "job_1", interval)
				if shown := got != nil; shown != tc.shown || len(p.at) != tc.gets || time.Since(p.start) != tc.took {
					t.Errorf("shown %t by %d GETs in %s, want %t by %d in %s", shown, len(p.at), time.Since(p.start), tc.shown, tc.gets, tc.took)
				}
			})
		})
	}
}
