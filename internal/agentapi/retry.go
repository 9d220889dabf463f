// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// retryLimit is how long a POST that was not sent is retried.
	retryLimit = 60 * time.Second
	retryBase  = 500 * time.Millisecond
	retryCap   = 10 * time.Second
	// longest is what a longer Retry-After counts as.
	longest = 365 * 24 * time.Hour
)

// backoff is the pause before attempt number attempt+1: capped, exponential, with
// full jitter, so that many callers do not retry at once.
func backoff(attempt int) time.Duration {
	ceiling := retryCap
	if attempt < 5 {
		ceiling = min(retryBase<<attempt, retryCap)
	}
	return rand.N(ceiling) + time.Millisecond
}

// retryAfter reads the Retry-After header: seconds, also with a fraction, or a date relative to the
// response's Date header, because the two clocks may differ. A date in the past
// means now. ok is false without a valid header. The caller bounds it: it is advice.
func retryAfter(header http.Header, now time.Time) (pause time.Duration, ok bool) {
	value := strings.TrimSpace(header.Get("Retry-After"))
	seconds, err := strconv.ParseFloat(value, 64)
	if isNumber := strings.Trim(value, "0123456789.") == ""; err == nil && isNumber {
		return time.Duration(min(seconds, float64(longest/time.Second)) * float64(time.Second)), true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	if sent, err := http.ParseTime(header.Get("Date")); err == nil {
		now = sent
	}
	return min(max(date.Sub(now), 0), longest), true
}
