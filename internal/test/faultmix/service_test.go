// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// dial is the provider's way to the service; faults before the connection are here.
func (m *module) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if !strings.HasSuffix(m.URL, "://"+address) {
		m.sum.number(keyBytes, 1)
		m.Errorf("a connection to %s", address)
	}
	if u, _ := ctx.Value(userKey{}).(*user); u != nil {
		if dial := u.dialFault(); dial != nil {
			return dial()
		}
	}
	return m.Dial(ctx, network, address)
}

// userOf finds whose prompt this is.
func (m *module) userOf(prompt string) *user {
	var n int
	if _, err := fmt.Sscanf(prompt, "%d:", &n); err != nil {
		panic(err)
	}
	return m.users[n]
}

// userOfPath finds whose job a path names, or nil.
func (m *module) userOfPath(path string) *user {
	_, id, _ := strings.Cut(path, "/job/")
	id, _, _ = strings.Cut(id, "/")
	job, ok := m.sim.Job(id)
	if !ok {
		m.sum.number(lostIDs, 1)
		m.Errorf("a request for a job that does not exist: %s", path)
		return nil
	}
	return m.userOf(job.Prompts[0])
}

// post responds to a create or a message.
func (m *module) post(kind faultserver.Kind, x *faultserver.Exchange) {
	var fields struct{ Prompt string }
	body, err := io.ReadAll(x.Request.Body)
	if err != nil || json.Unmarshal(body, &fields) != nil {
		panic("not our body")
	}
	x.Request.Body = io.NopCloser(bytes.NewReader(body))
	u := m.userOf(fields.Prompt)
	if kind == faultserver.Message && m.userOfPath(x.Request.URL.Path) != u {
		u.fail(other, "a message to another user's job: %s", x.Request.URL.Path)
	}
	u.respondToPost(kind, fields.Prompt, x)
}

// serve has the service do what a request asks for, and returns its response.
func (m *module) serve(x *faultserver.Exchange) (status int, body string) {
	recorder := httptest.NewRecorder()
	m.sim.ServeHTTP(recorder, x.Request)
	return recorder.Code, recorder.Body.String()
}

// dialFault is what happens to a connection for a POST; nil: nothing.
func (u *user) dialFault() func() (net.Conn, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.posts) == 0 || u.posts[0].dial == nil {
		return nil
	}
	f := u.next(&u.posts)
	s := &sent{u.sends, u.prompts[u.at], f, f.class, "", time.Now(), time.Now()}
	return func() (net.Conn, error) {
		return f.dial(func() {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.sent = append(u.sent, s)
		})
	}
}

// next takes the next fault out of a queue, nil if there is none. The caller holds u.mu.
func (u *user) next(queue *[]*fault) *fault {
	if len(*queue) == 0 {
		return nil
	}
	f := (*queue)[0]
	if f.row != "" && !f.played {
		f.played = true
		u.sum.fault(f.row)
		u.log("%s", f.row)
	}
	if f.times--; f.times == 0 {
		*queue = (*queue)[1:]
	}
	return f
}

func (u *user) respondToGet(x *faultserver.Exchange) {
	u.mu.Lock()
	f := u.next(&u.gets)
	u.mu.Unlock()
	if f == nil || f.play == nil {
		faultserver.Healthy(x)
		return
	}
	_, body := u.serve(x)
	f.play(body)(x)
}

func (u *user) respondToPost(kind faultserver.Kind, prompt string, x *faultserver.Exchange) {
	u.mu.Lock()
	f := u.next(&u.posts)
	u.mu.Unlock()
	if f == nil {
		f = &fault{class: accepted, effect: true, play: overlaid(nil)}
	}
	s := &sent{kind, prompt, f, f.class, "", time.Now(), time.Time{}}
	body, response := anyJob, f.play
	if f.effect {
		var status int
		if status, body = u.serve(x); status < 300 {
			s.job = idOf(body)
		} else if s.class == accepted { // the job has finished for good
			s.class, response = refused, always(faultserver.Answer(status, body))
		}
	}
	u.mu.Lock()
	u.sent = append(u.sent, s)
	u.log("%s %q %s %s, effect on %q", kind, prompt, f.row, s.class, s.job)
	u.mu.Unlock()
	response(body)(x)
	u.mu.Lock()
	s.over = time.Now()
	u.mu.Unlock()
}
