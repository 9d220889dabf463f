// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"io"
	"sync"
)

// delivery decides between a connection, from which on a POST is on its way and
// cannot be taken back, and the end of its context before that.
type delivery struct {
	mu                 sync.Mutex
	connected, givenUp bool // one at the most
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

// detach returns a context that ctx ends only as long as there is no connection.
func (d *delivery) detach(ctx context.Context) (context.Context, func()) {
	detached, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
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

// postBody keeps a request that was given up from being sent over a connection that
// came in the same moment.
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
