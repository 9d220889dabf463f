// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"time"
)

// Assign records that the name has the job of the wanted message, which a person has imported, without sending anything. That decides
// about a create whose outcome is unknown, and about another job of the name. started may be zero.
func (c *Call) Assign(ctx context.Context, started time.Time) error {
	for {
		if _, _, err := c.Look(ctx); err != nil {
			return err
		}
		r := c.claimed(false)
		r.accept(r.Claim, c.wanted.Job)
		r.Started, r.Arguments, r.Last.IsMessage = started, Hash(c.wanted.Arguments), false // nothing was sent that an adoption must wait for
		//nolint:contextcheck // the CLI's own, without our deadline
		if err := c.write(context.WithoutCancel(c.ctx), r); !errors.Is(err, ErrTaken) {
			return err
		}
	}
}
