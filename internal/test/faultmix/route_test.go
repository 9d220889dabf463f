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
func (m *rootModule) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if !strings.HasSuffix(m.URL, "://"+address) {
		m.sum.wrong(keyBytes, 1)
		m.Errorf("a connection to %s", address)
	}
	dial := m.Dial
	if u, _ := ctx.Value(userKey{}).(*user); u != nil {
		if fault := u.dialFault(); fault != nil {
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

// userOf finds whose prompt this is.
func (m *rootModule) userOf(prompt string) *user {
	var module, n int
	if _, err := fmt.Sscanf(prompt, "[%d.%d]", &module, &n); err != nil {
		panic(err)
	}
	return m.users[n]
}

// userOfPath finds whose job a path names, or nil.
func (m *rootModule) userOfPath(path string) (*user, simulator.Job) {
	_, id, _ := strings.Cut(path, "/job/")
	id, _, _ = strings.Cut(id, "/")
	job, ok := m.sim.Job(id)
	if !ok {
		m.sum.wrong(lostIDs, 1)
		m.Errorf("a request for a job that nobody has: %s", path)
		return nil, job
	}
	return m.userOf(job.Prompts[0]), job
}

// post plays a create or a message.
func (m *rootModule) post(kind faultserver.Kind, x *faultserver.Exchange) {
	body, prompt := readPrompt(x)
	m.mu.Lock()
	early := m.postRest.holds(time.Now())
	m.mu.Unlock()
	u := m.userOf(prompt)
	if kind == faultserver.Message {
		if u, _ = m.userOfPath(x.Request.URL.Path); u == nil {
			faultserver.EOF(x)
			return
		}
	}
	if early {
		u.fail(other, "a POST in a pause")
	}
	if x.Reused {
		u.fail(duplicates, "a POST on a used connection")
	}
	x.Request.Body = io.NopCloser(bytes.NewReader(body))
	u.answerPost(kind, prompt, x)
}

// get plays a poll or a refresh.
func (m *rootModule) get(x *faultserver.Exchange) {
	now := time.Now()
	u, job := m.userOfPath(x.Request.URL.Path)
	if u == nil {
		faultserver.Healthy(x)
		return
	}
	m.mu.Lock()
	early := m.getRest.holds(now)
	m.polls = append(m.polls, now)
	m.mu.Unlock()
	if early {
		u.fail(other, "a GET in a pause")
	}
	u.answerGet(job, x)
}
