// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// dial is the provider's way to the service; faults before the connection are here.
func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if !strings.HasSuffix(w.URL, "://"+address) {
		w.sum.wrong(keyBytes, 1)
		w.Errorf("a connection to %s", address)
	}
	dial := w.Dial
	if o, _ := ctx.Value(orderKey{}).(*order); o != nil {
		if fault := o.dialFault(); fault != nil {
			dial = fault
		}
	}
	conn, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return hasty{conn}, nil
}

// hasty does not wait for anybody to read the alert that ends a TLS connection:
// net/http holds a lock meanwhile, and waiting for that stops the fake clock.
type hasty struct{ net.Conn }

func (c hasty) SetWriteDeadline(at time.Time) error { // by crypto/tls, for the alert
	if !at.IsZero() {
		at = time.Now()
	}
	return c.Conn.SetWriteDeadline(at)
}

// orderOf finds whose prompt this is.
func (w *world) orderOf(prompt string) *order {
	var world, n int
	if _, err := fmt.Sscanf(prompt, "[%d.%d]", &world, &n); err != nil {
		panic(err)
	}
	return w.orders[n]
}

// orderOfPath finds whose job a path names, or nil.
func (w *world) orderOfPath(path string) (*order, simulator.Job) {
	_, id, _ := strings.Cut(path, "/job/")
	id, _, _ = strings.Cut(id, "/")
	job, ok := w.sim.Job(id)
	if !ok {
		w.sum.wrong(lostIDs, 1)
		w.Errorf("a request for a job that nobody has: %s", path)
		return nil, job
	}
	return w.orderOf(job.Prompts[0]), job
}

// post plays a create or a message.
func (w *world) post(kind faultserver.Kind, x *faultserver.Exchange) {
	body, prompt := readPrompt(x)
	w.mu.Lock()
	early := w.postRest.holds(time.Now())
	w.mu.Unlock()
	o := w.orderOf(prompt)
	if kind == faultserver.Message {
		if o, _ = w.orderOfPath(x.Request.URL.Path); o == nil {
			faultserver.EOF(x)
			return
		}
	}
	if early {
		o.fail(other, "a POST in a pause")
	}
	if x.Reused {
		o.fail(duplicates, "a POST on a used connection")
	}
	x.Request.Body = io.NopCloser(bytes.NewReader(body))
	o.posted(kind, prompt, x)
}

// get plays a poll or a refresh.
func (w *world) get(x *faultserver.Exchange) {
	now := time.Now()
	o, job := w.orderOfPath(x.Request.URL.Path)
	if o == nil {
		faultserver.Healthy(x)
		return
	}
	w.mu.Lock()
	early := w.getRest.holds(now)
	w.polls = append(w.polls, now)
	w.mu.Unlock()
	if early {
		o.fail(other, "a GET in a pause")
	}
	o.looked(job, x)
}
