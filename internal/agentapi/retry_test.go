// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format("Mon, 02 Jan 2006 15:04:05 GMT") }
	const far = "Fri, 31 Dec 9999 23:59:59 GMT"
	for name, tc := range map[string]struct {
		value, date string
		want        time.Duration
		ok          bool
	}{
		"none":                  {},
		"seconds":               {value: "120", want: 2 * time.Minute, ok: true},
		"zero":                  {value: "0", ok: true},
		"date":                  {value: date(90 * time.Second), want: 90 * time.Second, ok: true},
		"past date":             {value: date(-time.Hour), ok: true},
		"P12 date, clock ahead": {value: date(time.Hour + time.Minute), date: date(time.Hour), want: time.Minute, ok: true},
		"negative":              {value: "-5"},
		"fraction":              {value: " 1.5 ", want: 1500 * time.Millisecond, ok: true},
		"two numbers":           {value: "1.2.3"},
		"other notations":       {value: "1e3"},
		"infinite":              {value: "Inf"},
		"huge":                  {value: "99999999999999999999", want: longest, ok: true},
		"far date":              {value: far, want: longest, ok: true},
	} {
		if got, ok := retryAfter(http.Header{"Retry-After": {tc.value}, "Date": {tc.date}}, now); got != tc.want || ok != tc.ok {
			t.Errorf("%s: %v, %t, want %v, %t", name, got, ok, tc.want, tc.ok)
		}
	}
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
