// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"math/rand/v2"
	"time"
)

// Schedule is how often a wait polls its job: after a tenth of the time that it has
// lasted, so that the delay stays in proportion to the job, within bounds and with
// 10% jitter.
type Schedule struct {
	Min time.Duration // shortest interval; the first is twice as long
	Max time.Duration // longest interval
}

// first is the time until the first poll of a new job.
func (s Schedule) first() time.Duration { return jitter(min(2*s.Min, s.Max)) }

// next is the time until the poll after one made when the wait had lasted for age.
func (s Schedule) next(age time.Duration) time.Duration {
	return jitter(min(max(age/10, s.Min), s.Max))
}

func jitter(interval time.Duration) time.Duration {
	return interval - interval/10 + rand.N(interval/5+1)
}
