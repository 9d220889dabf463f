// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// delivery is a POST on its way. Until its body is read, the end of its context withdraws it. From
// then on the service may receive it, so it waits for the response.
type delivery struct {
	call apiCall
	ctx  context.Context // of the exchange

	mu        sync.Mutex
	isSealed  bool // no byte of its body may be sent any more
	isClaimed bool
	isBegun   bool  // its body may have been sent, in part
	obstacle  error // why it was not claimed or sent now
	conn      *postConn
	unread    int  // bytes of the body that the transport has not read yet
	isCut     bool // bytes were left when the connection could no longer be written
}

// errPaused keeps back a POST that had its turn, because another POST got a 429 while this one
// connected. It must wait for another turn.
var errPaused = errors.New("the service's rate limit pauses requests")

// connect follows a connection: it claims the request, and only then may its body be read.
func (d *delivery) connect(conn net.Conn) {
	obstacle, isClaimed := d.stopped(), false
	if obstacle == nil {
		obstacle = d.call.recorder.Claim()
		isClaimed = obstacle == nil
	}
	if obstacle == nil { // the claim may have taken long, and the run may have been stopped meanwhile
		obstacle = d.stopped()
	}
	for { // TLS to the service, and TLS to an https proxy, are a layer each around the postConn
		secured, isTLS := conn.(*tls.Conn)
		if !isTLS {
			break
		}
		conn = secured.NetConn()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn, _ = conn.(*postConn)
	d.isClaimed = isClaimed
	if obstacle != nil && !d.isSealed {
		d.isSealed, d.obstacle = true, obstacle
	}
	if d.isSealed && d.conn != nil {
		d.conn.isBroken.Store(true) // drops the head, which net/http sends before it reads the body
	}
}

// stopped returns why the request must not be sent now.
func (d *delivery) stopped() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.isSealed:
		return context.Canceled
	case d.call.isPaused():
		return errPaused
	}
	return nil
}

// end says what became of the request. From then on, no byte of it is sent.
func (d *delivery) end(got *response) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isSealed = true
	got.obstacle, got.isClaimed, got.isBegun = d.obstacle, d.isClaimed, d.isBegun
	got.isCut = d.isCut || d.unread > 0
}

// errStopped ends a POST whose response did not arrive in time after the run was stopped.
var errStopped = errors.New("the run was interrupted, and no response arrived in time")

type graceKey struct{}

// WithGrace limits how long a POST waits for its response once ctx is cancelled. Without it, or if
// only the deadline of a context derived from ctx has passed, it waits up to the request timeout.
func WithGrace(ctx context.Context, grace time.Duration) context.Context {
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(grace, func() { cancel(errStopped) }) })
	return context.WithValue(ctx, graceKey{}, late)
}

// detach returns a context that ctx cancels only until the body is read, or at the end of its grace.
func (d *delivery) detach(ctx context.Context) (context.Context, func()) {
	late, ok := ctx.Value(graceKey{}).(context.Context)
	if !ok {
		late = context.WithoutCancel(ctx)
	}
	detached, cancel := context.WithCancelCause(late)
	stop := context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if !d.isBegun {
			d.isSealed = true
			cancel(context.Cause(ctx))
		}
	})
	return detached, func() { stop(); cancel(nil) }
}

// postBody is read only while its delivery may be sent.
type postBody struct {
	io.Reader
	delivery *delivery
}

func (b postBody) Read(p []byte) (int, error) {
	d := b.delivery
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.isBegun && !d.isSealed {
		d.obstacle = d.beforeBody()
		d.isBegun = d.obstacle == nil && d.ctx.Err() == nil // else the exchange has ended while the recorder was writing
		d.isSealed = !d.isBegun
	}
	if d.isSealed {
		return 0, context.Canceled
	}
	d.isCut = d.isCut || d.unread > 0 && d.conn != nil && d.conn.isBroken.Load()
	n, err := b.Reader.Read(p)
	d.unread -= n
	return n, err
}

// errInternal is a panic of the recorder, whose value may contain anything.
var errInternal = errors.New("the provider hit an internal error while it recorded the request")

// beforeBody calls the recorder on a goroutine of net/http, where nobody else would recover.
func (d *delivery) beforeBody() (err error) {
	defer func() {
		if recover() != nil {
			err = errInternal
		}
	}()
	return d.call.recorder.BeforeBody()
}

// postConn is a connection of one POST. A server may refuse a large request and close the
// connection before it has read everything: net/http would then report that it cannot write, and
// drop the response. So errors of writing are left to whoever reads.
type postConn struct {
	net.Conn
	isBroken atomic.Bool
}

func (c *postConn) Write(p []byte) (int, error) {
	if !c.isBroken.Load() {
		if _, err := c.Conn.Write(p); err != nil {
			c.isBroken.Store(true)
		}
	}
	return len(p), nil
}
