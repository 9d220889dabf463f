// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// As many as are used at once are kept, and none for ever.
func TestExchange_pooledConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers = 128
		s, c := startServer(t, faultserver.Options{InMemory: true})
		s.Always(faultserver.Get, func(x *faultserver.Exchange) {
			time.Sleep(time.Second) // until all have asked
			faultserver.Healthy(x)
		})
		for i, dials := range []int{callers, callers, 2 * callers} {
			time.Sleep(time.Duration(i) * time.Minute) // the third time, the connections have idled too long
			var all sync.WaitGroup
			for range callers {
				all.Go(func() { _, _ = c.GetJob(t.Context(), "p", "job_1") })
			}
			all.Wait()
			synctest.Wait() // the connections are idle again
			if s.Dials() != dials {
				t.Errorf("%d connections for %d callers, want %d", s.Dials(), callers, dials)
			}
		}
	})
}

// C13: the largest response that is read.
func TestExchange_bound(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]error{maxBody: nil, maxBody + 1: errTooLarge} {
		c := newFakeClient(t, &fakeService{answers: []answer{{status: 200, body: record + strings.Repeat(" ", size-len(record))}}})
		if _, err := c.PollJob(t.Context(), "p", "job_1"); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", size, err, want)
		}
	}
}

// A dead address must leave time for the next one.
func TestNewDialer_requestTimeout(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{10 * time.Second: 10 * time.Second, time.Hour: 30 * time.Second} {
		if got := newDialer(timeout).Timeout; got != want {
			t.Errorf("%v for all addresses within a request timeout of %v, want %v", got, timeout, want)
		}
	}
}
