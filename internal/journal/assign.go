// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"time"
)

// Assignment is a job in the state that a person has imported or renamed.
type Assignment struct {
	Started    time.Time // zero: nobody knows
	IsImported bool      // which decides about a create whose outcome is unknown
	IsRenamed  bool
	Earlier    *Record // of the name that a renamed job had; may be nil
}

// Assign records that the name has the job of the wanted message, without sending anything. If the name has another job, nothing is
// written, unless a person has imported the wanted one: other is then its record.
func (c *Call) Assign(ctx context.Context, a Assignment) (other *Record, _ error) {
	for {
		verdict, record, err := c.Look(ctx)
		switch {
		case err != nil:
			return nil, err
		case verdict == OtherJob && !a.IsImported:
			return record, nil
		case a.IsRenamed && record.Outlives(a.Earlier, c.wanted.Job): // a run was killed after this
			return nil, nil
		}
		err = c.write(context.WithoutCancel(c.ctx), c.assigned(a)) //nolint:contextcheck // the CLI's own, without our deadline
		if !errors.Is(err, ErrTaken) {
			return nil, err
		}
	}
}

// assigned is the record with an assigned job.
func (c *Call) assigned(a Assignment) *Record {
	r := c.claimed(false)
	r.accept(r.Claim, c.wanted.Job, c.journal.IsInState(r.Job) || a.IsImported && c.under.IsUnknownCreate())
	r.Started, r.Arguments = a.Started, Hash(c.wanted.Arguments)
	if a.Earlier != nil {
		r.Started, r.Arguments, r.Last = a.Earlier.Started, a.Earlier.Arguments, a.Earlier.Last
	}
	return c.journal.withoutForgotten(r)
}
