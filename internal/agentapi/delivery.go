// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// delivery decides which came first: a connection, after which a POST cannot be
// taken back, or the end of its context.
type delivery struct {
	mu                 sync.Mutex
	connected, givenUp bool // at most one is true
}

func (d *delivery) connect() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.connected = !d.givenUp
}

func (d *delivery) reached() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.connected
}

// errStopped ends a POST whose response did not arrive in time after the run was stopped.
var errStopped = errors.New("the run was interrupted, and no response arrived in time")

type graceKey struct{}

// WithGrace limits how long a POST waits for its response once ctx is cancelled. Without
// it, and if a deadline ends a context derived from ctx, that is the request timeout.
func WithGrace(ctx context.Context, grace time.Duration) context.Context {
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(grace, func() { cancel(errStopped) }) })
	return context.WithValue(ctx, graceKey{}, late)
}

// detach returns a context that ctx cancels only while there is no connection, or at the
// end of its grace.
func (d *delivery) detach(ctx context.Context) (context.Context, func()) {
	late, ok := ctx.Value(graceKey{}).(context.Context)
	if !ok {
		late = context.WithoutCancel(ctx)
	}
	detached, cancel := context.WithCancelCause(late)
	stop := context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if !d.connected {
			d.givenUp = true
			cancel(context.Cause(ctx))
		}
	})
	return detached, func() { stop(); cancel(nil) }
}

// postBody keeps a cancelled request from being sent over a connection that was made
// at the same moment.
type postBody struct {
	io.Reader
	delivery *delivery
}

func (b postBody) Read(p []byte) (int, error) {
	b.delivery.mu.Lock()
	defer b.delivery.mu.Unlock()
	if b.delivery.givenUp {
		return 0, context.Canceled
	}
	return b.Reader.Read(p)
}
