// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"io"
	"sync"
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

// detach returns a context that ctx cancels only while there is no connection.
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
