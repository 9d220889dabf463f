// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the clock stands still
		date := func(d time.Duration) string { return time.Now().UTC().Add(d).Format(http.TimeFormat) }
		for name, tc := range map[string]struct {
			value, date string
			want        time.Duration
		}{
			"none":                  {},
			"seconds":               {value: "120", want: 2 * time.Minute},
			"fraction":              {value: "1.5", want: 1500 * time.Millisecond},
			"negative":              {value: "-5"},
			"other notations":       {value: "1e3"},
			"a unit":                {value: "30m"},
			"infinite":              {value: "Inf"},
			"huge":                  {value: "99999999999999999999", want: 365 * 24 * time.Hour},
			"date":                  {value: date(90 * time.Second), want: 90 * time.Second},
			"past date":             {value: date(-time.Hour)},
			"far date":              {value: "Fri, 31 Dec 9999 23:59:59 GMT", want: math.MaxInt64},
			"P12 date, clock ahead": {value: date(time.Hour + time.Minute), date: date(time.Hour), want: time.Minute},
		} {
			if got := retryAfter(http.Header{"Retry-After": {tc.value}, "Date": {tc.date}}); got != tc.want {
				t.Errorf("%s: %v, want %v", name, got, tc.want)
			}
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for attempt, ceiling := range map[int]time.Duration{
		0: 500 * time.Millisecond, 1: time.Second, 4: 8 * time.Second, 5: retryCap, 63: retryCap, 1 << 40: retryCap,
	} {
		hundredths := map[time.Duration]bool{}
		for range 5000 {
			pause := backoff(attempt)
			if pause <= 0 || pause > ceiling+time.Millisecond {
				t.Fatalf("backoff(%d) = %v, want within (0, %v]", attempt, pause, ceiling)
			}
			hundredths[100*pause/ceiling] = true
		}
		if len(hundredths) < 100 {
			t.Errorf("backoff(%d): %d hundredths of %v, no full jitter", attempt, len(hundredths), ceiling)
		}
	}
}
