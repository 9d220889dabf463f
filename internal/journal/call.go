// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"os"
	"time"
)

// Call follows one call of the CLI that may POST.
type Call struct {
	journal *Journal
	key     Key
	number  int
	ctx     context.Context
}

// Begin starts to follow a call. ctx is the call's own context, without any
// deadline of ours: when it ends before the call does, the CLI is gone.
func (j *Journal) Begin(ctx context.Context, key Key) *Call {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.number++
	return &Call{journal: j, key: key, number: j.number, ctx: ctx}
}

var errNoCLI = errors.New("the CLI has ended")

// Sending notes that a POST is about to be sent. It returns once that is on disk,
// and with an error when the CLI is gone: the next run may have looked for the
// note already, and must not be followed by a POST that it knows nothing of.
func (c *Call) Sending() error {
	if c == nil {
		return nil
	}
	c.pending()
	c.write(entry{Key: c.key, Number: c.number, At: time.Now().Unix()}, true)
	if os.Getppid() != c.journal.parent {
		return errNoCLI
	}
	return nil
}

// Answered notes the job that the POST has started or reached. It returns once
// that is on disk.
func (c *Call) Answered(jobID string) {
	if c == nil {
		return
	}
	c.pending()
	c.write(entry{Key: c.key, Number: c.number, At: time.Now().Unix(), JobID: jobID}, true)
}

// Withdrawn notes that the POST had no effect: it was not sent, or refused.
func (c *Call) Withdrawn() {
	if c == nil {
		return
	}
	c.journal.mu.Lock()
	delete(c.journal.calls, c.number)
	c.journal.mu.Unlock()
	c.write(entry{Number: c.number, Gone: true}, false)
}

func (c *Call) pending() {
	c.journal.mu.Lock()
	defer c.journal.mu.Unlock()
	c.journal.calls[c.number] = true
}

func (c *Call) write(e entry, sync bool) {
	if err := c.journal.writer.append(e, sync, c.journal.open); err != nil {
		c.journal.failed(err)
	}
}

// End notes that the call returns to the CLI. Use it deferred.
func (c *Call) End() {
	if c == nil {
		return
	}
	c.journal.mu.Lock()
	defer c.journal.mu.Unlock()
	if c.ctx.Err() != nil && !c.journal.stop && c.journal.calls[c.number] && !c.journal.hasLost() {
		close(c.journal.lost) // the connection is gone, and with it what this call returns
	}
	delete(c.journal.calls, c.number)
}
