// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// endsAt is a Poller for many waits at once: their job ends at one moment.
type endsAt time.Time

func (e endsAt) PollJob(context.Context, string, string) (*agentapi.Job, error) {
	if time.Now().Before(time.Time(e)) {
		return job(active), nil
	}
	return job(completed), nil
}

// BenchmarkWaits is the cost of waiting five minutes, all polls included.
func BenchmarkWaits(b *testing.B) {
	for _, waits := range []int{1000, 10000} {
		b.Run(fmt.Sprint(waits), func(b *testing.B) {
			b.ReportAllocs()
			// synctest needs a *testing.T, which testing.Benchmark cannot give: so
			// the bubble is made by a test that is run for each round.
			for b.Loop() {
				ok := testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{
					Name: "waits", F: func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							w := Waiter{Poller: endsAt(time.Now().Add(5 * time.Minute)), Schedule: usual}
							var all sync.WaitGroup
							for range waits {
								all.Go(func() {
									if _, err := w.Wait(t.Context(), Request{ProjectID: "p", JobID: "job_1", After: Created}); err != nil {
										t.Error(err)
									}
								})
							}
							all.Wait()
						})
					},
				}})
				if !ok {
					b.Fatal("a wait failed")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(waits), "µs/wait")
		})
	}
}
