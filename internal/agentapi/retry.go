// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

const (
	// retryTime is how long a POST that was not sent is retried.
	retryTime = 60 * time.Second
	retryBase = 500 * time.Millisecond
	retryCap  = 10 * time.Second
)

// mayRetry reports whether another attempt may succeed: the network has kept the POST from the service.
func mayRetry(failure *Error) bool {
	return failure.wasTried() && errors.Is(failure, ErrNotSent) && !errors.Is(failure, ErrCertificate)
}

// retries are the failures of one POST since its last 429.
type retries struct {
	began   time.Time
	failed  int
	refused int // in a row, by TLS or a proxy: they say no at once, and seldom change their mind
}

// pause waits before another attempt. It returns false if the failure counts: it notes how long it has
// lasted.
func (r *retries) pause(ctx context.Context, failure *Error) (again bool) {
	if r.failed == 0 {
		r.began = time.Now()
	}
	r.refused++
	if !errors.Is(failure, ErrHandshake) && !errors.Is(failure, ErrProxyRefused) {
		r.refused = 0
	}
	pause := backoff(r.failed)
	r.failed++
	if r.refused < fewestRefusals && time.Since(r.began)+pause <= retryTime && sleep.For(ctx, pause) == nil {
		return true
	}
	failure.Lasted = time.Since(r.began)
	return false
}

// backoff is the pause after that many failures before this one: capped, exponential, with
// full jitter, so that many callers do not retry at once.
func backoff(failures int) time.Duration {
	return rand.N(min(retryBase<<min(failures, 5), retryCap)) + time.Millisecond
}

// retryAfter reads the Retry-After header: seconds, also with a fraction, or a date relative to the
// response's Date header, because the two clocks may differ. It is 0 without a valid header, and for
// a date in the past. The caller bounds it: it is advice.
func retryAfter(header http.Header) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && strings.Trim(value, "0123456789.") == "" {
		return time.Duration(min(seconds, time.Hour.Seconds()*24*365) * float64(time.Second))
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now := time.Now()
	if sent, err := http.ParseTime(header.Get("Date")); err == nil {
		now = sent
	}
	return max(date.Sub(now), 0)
}
