// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// TestInterruptions ends a wait at moments all over it, in a poll and between
// two, by a cancel and by the deadline: it returns in that moment.
func TestInterruptions(t *testing.T) {
	t.Parallel()
	for range 150 {
		at := rand.N(40 * time.Second)
		for name, tc := range map[string]struct {
			end func(context.Context) (context.Context, context.CancelFunc)
			is  error
		}{
			"cancel": {func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(at, cancel)
				return ctx, cancel
			}, ErrInterrupted},
			"deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, at) }, ErrTimeout},
		} {
			synctest.Test(t, func(t *testing.T) {
				p := newPoller(activeUntil(time.Hour, agentapi.StatusCompleted))
				p.latency = time.Second
				ctx, cancel := tc.end(t.Context())
				defer cancel()
				_, err := Waiter{Poller: p, Schedule: usual}.Wait(ctx, Request{ProjectID: "p", JobID: "job_1", After: Event(rand.N(3))})
				if took := time.Since(p.start); !errors.Is(err, tc.is) || took != at {
					t.Errorf("%s at %v: %v after %v, want %v", name, at, err, took, tc.is)
				}
			})
		}
	}
}

func TestInterruptedBeforeTheWait(t *testing.T) {
	t.Parallel()
	for _, after := range []Event{Resumed, Created, Messaged} {
		synctest.Test(t, func(t *testing.T) {
			p := newPoller(func(int, time.Duration) (*agentapi.Job, error) { return nil, fault500 })
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errors.New("stop"))
			got, err := Waiter{Poller: p, Schedule: usual}.Wait(ctx, Request{ProjectID: "p", JobID: "job_1", After: after})
			if got != nil || !errors.Is(err, ErrInterrupted) || time.Since(p.start) != 0 {
				t.Errorf("%v, %v after %v, want ErrInterrupted at once", got, err, time.Since(p.start))
			}
		})
	}
}
