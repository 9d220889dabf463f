// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func perSecond(n float64) func(*Config) {
	return func(c *Config) { c.MaxPollsPerSecond = n }
}

// A refresh does not queue behind the waits, of
// which a tenth of a second's budget may go at once.
func TestPollJob_budget(t *testing.T) {
	t.Parallel()
	for budget, want := range map[float64]time.Duration{1: 29 * time.Second, 100: 200 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c := newFakeClient(t, scripted([]outcome{whole}), perSecond(budget))
			var all sync.WaitGroup
			for range 30 {
				all.Go(func() {
					if _, err := c.PollJob(t.Context(), "p", "job_1"); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			start := time.Now()
			if _, err := c.GetJob(t.Context(), "p", "job_1"); err != nil || time.Since(start) != 0 {
				t.Errorf("%v after %v, want the job at once", err, time.Since(start))
			}
			all.Wait()
			if took := time.Since(start).Round(time.Millisecond); took != want {
				t.Errorf("thirty polls at %v a second took %v, want %v", budget, took, want)
			}
		})
	}
}

// A poll whose turn never comes ends when its
// context does, neither before nor after.
func TestPollJob_endsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Minute)
		},
		"cancel": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Minute, cancel)
			return ctx, cancel
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := scripted([]outcome{whole})
				c := newFakeClient(t, f, perSecond(0.001))
				ctx, cancel := end(t.Context())
				defer cancel()
				start := time.Now()
				if _, err := c.PollJob(ctx, "p", "job_1"); err != nil {
					t.Fatal(err)
				}
				_, err := c.PollJob(ctx, "p", "job_1")
				if !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.Cause(ctx)) || time.Since(start) != time.Minute || f.gets != 1 {
					t.Errorf("%v after %v and %d GETs, want the end of the context after 1m and 1", err, time.Since(start), f.gets)
				}
			})
		})
	}
}
