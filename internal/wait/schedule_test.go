// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

func within(d, mean time.Duration) bool { return d >= mean-mean/10 && d <= mean+mean/10 }

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
			if !within(pause, tc.mean) {
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

// The polls of an hour.
func TestSchedule_intervals(t *testing.T) {
	t.Parallel()
	for after, first := range map[Event]time.Duration{Resumed: 0, Created: 2 * usual.Min, Messaged: 2 * usual.Min} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPoller(activeUntil(time.Hour, agentapi.StatusCompleted))
				got, err := Waiter{Poller: p, Schedule: usual}.Wait(t.Context(), Request{ProjectID: "p", JobID: "job_1", After: after})
				if err != nil || got.Status != agentapi.StatusCompleted {
					t.Fatalf("%v, %v", got, err)
				}
				if took := time.Since(p.start); took < time.Hour || took > time.Hour+11*time.Second {
					t.Errorf("the end was seen after %v", took)
				}
				if !within(p.at[0], first) {
					t.Errorf("first poll at %v, want about %v", p.at[0], first)
				}
				for i := 1; i < len(p.at); i++ {
					mean := min(max(p.at[i-1]/10, usual.Min), usual.Max)
					if pause := p.at[i] - p.at[i-1]; !within(pause, mean) {
						t.Errorf("pause of %v at age %v, want %v within a tenth", pause, p.at[i-1], mean)
					}
				}
				if n := len(p.at); n < 350 || n > 430 {
					t.Errorf("%d polls in an hour", n)
				}
			})
		})
	}
}

// It holds the default schedule to its goals: how late the end of a
// job is seen, at the median, and with how many requests.
func TestSchedule_detection(t *testing.T) {
	t.Parallel()
	const waits = 1001
	for _, tc := range []struct {
		length, spread time.Duration // lengths are spread evenly on both sides
		p50            time.Duration
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
				p := newPoller(activeUntil(end, agentapi.StatusCompleted))
				w := Waiter{Poller: p, Schedule: usual}
				if _, err := w.Wait(t.Context(), Request{ProjectID: "p", JobID: "job_1", After: Created}); err != nil {
					t.Fatal(err)
				}
				late[i], polls[i] = time.Since(p.start)-end, len(p.at)
			}
			slices.Sort(late)
			slices.Sort(polls)
			p50 := late[waits/2]
			if p50 > tc.p50 {
				t.Errorf("job of %v: its end is seen after %v at the median, want at most %v", tc.length, p50, tc.p50)
			}
			if polls[waits/2] > tc.polls {
				t.Errorf("job of %v: %d requests at the median, want at most %d", tc.length, polls[waits/2], tc.polls)
			}
		})
	}
}
