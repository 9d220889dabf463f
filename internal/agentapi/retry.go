// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	// retryLimit is how long a POST that was not sent is retried.
	retryLimit = 60 * time.Second
	retryBase  = 500 * time.Millisecond
	retryCap   = 10 * time.Second
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

// retryAfter reads the Retry-After header: seconds, or a date relative to the
// response's Date header, because the two clocks may differ. A date in the past
// means now. ok is false without a valid header.
func retryAfter(header http.Header, now time.Time) (pause time.Duration, ok bool) {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	if sent, err := http.ParseTime(header.Get("Date")); err == nil {
		now = sent
	}
	return max(date.Sub(now), 0), true
}
