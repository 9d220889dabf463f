// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestSchedule(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		schedule Schedule
		age      time.Duration // negative: the first poll
		mean     time.Duration
	}{
		{usual, -1, 1600 * time.Millisecond},
		{usual, 0, 800 * time.Millisecond},
		{usual, 8 * time.Second, 800 * time.Millisecond},
		{usual, 20 * time.Second, 2 * time.Second},
		{usual, 99 * time.Second, 9900 * time.Millisecond},
		{usual, 100 * time.Second, 10 * time.Second},
		{usual, 24 * time.Hour, 10 * time.Second},
		{Schedule{Min: 6 * time.Second, Max: 10 * time.Second}, -1, 10 * time.Second},
		{Schedule{Min: time.Second, Max: time.Second}, -1, time.Second},
		{Schedule{Min: time.Second, Max: time.Second}, time.Hour, time.Second},
	} {
		distinct := map[time.Duration]bool{}
		least, most := time.Duration(1<<62), time.Duration(0)
		for range 1000 {
			pause := tc.schedule.next(tc.age)
			if tc.age < 0 {
				pause = tc.schedule.first()
			}
			if off := (pause - tc.mean).Abs(); off > tc.mean/10 {
				t.Fatalf("%+v at age %v pauses %v, want %v within a tenth", tc.schedule, tc.age, pause, tc.mean)
			}
			distinct[pause] = true
			least, most = min(least, pause), max(most, pause)
		}
		if len(distinct) < 500 || most-least < tc.mean/10 {
			t.Errorf("%+v at age %v pauses %v to %v in %d ways: too little jitter", tc.schedule, tc.age, least, most, len(distinct))
		}
	}
}

// The goals of the default schedule: how late the end of a job is seen, at the
// median, and with how many polls.
func TestSchedule_detection(t *testing.T) {
	t.Parallel()
	const waits = 1001
	for _, tc := range []struct {
		length, spread time.Duration // lengths are spread evenly on both sides
		late           time.Duration
		polls          int
	}{
		{3 * time.Second, time.Second, 450 * time.Millisecond, 7},
		{20 * time.Second, time.Second, 1100 * time.Millisecond, 22},
		{300 * time.Second, 10 * time.Second, 5500 * time.Millisecond, 60},
	} {
		synctest.Test(t, func(t *testing.T) {
			late := make([]time.Duration, waits)
			polls := make([]int, waits)
			random := rand.New(rand.NewPCG(1, 2))
			for i := range waits {
				end := tc.length - tc.spread + time.Duration(random.Int64N(2*int64(tc.spread)))
				p := newPoller(change(active, end, completed))
				if _, failure := p.wait(t.Context(), t, Request{After: Created}); failure.Err != nil {
					t.Fatal(failure)
				}
				late[i], polls[i] = time.Since(p.start)-end, len(p.at)
			}
			slices.Sort(late)
			slices.Sort(polls)
			if late[waits/2] > tc.late || polls[waits/2] > tc.polls {
				t.Errorf("the end of a job of %v is seen after %v and %d polls, want at most %v and %d", tc.length, late[waits/2], polls[waits/2], tc.late, tc.polls)
			}
		})
	}
}
