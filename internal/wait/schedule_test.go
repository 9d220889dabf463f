// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"testing"
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
		{usual, 20 * time.Second, 2 * time.Second},
		{usual, 24 * time.Hour, 10 * time.Second},
		{Schedule{Min: 6 * time.Second, Max: 10 * time.Second}, -1, 10 * time.Second},
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
