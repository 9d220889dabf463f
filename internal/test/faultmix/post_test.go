// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
	"github.com/agentjobs/terraform-provider-agent/internal/test/matrix"
)

// postFault is what happens to a POST, before or instead of its answer.
type postFault struct {
	row    string
	class  class
	effect bool // the service does what is asked, whatever it answers
	final  bool // no other POST follows in this apply
	times  int  // in a row; for dial only
	began  bool
	dial   agentapi.Dial
	play   func(p postCall)
}

// postCall is one POST that waits for its answer.
type postCall struct {
	*user
	x    *faultserver.Exchange
	body string // the service's true answer, or one that it might have given
}

func (p postCall) answer(play faultserver.Play) { play(p.x) }

// postRow makes the faults of one row.
type postRow struct {
	row     string
	weight  int
	tls     bool // with TLS only
	message bool // to a message only
	create  bool // to a create only
	make    func(u *user) *postFault
}

// either is a fault that leaves the outcome unknown, with or without the effect.
func either(r *rand.Rand, play faultserver.Play) *postFault {
	return &postFault{class: unknownOutcome, effect: r.IntN(2) == 0, final: true, play: func(p postCall) { p.answer(play) }}
}

func answering(c class, play faultserver.Play) *postFault {
	return &postFault{class: c, final: c != limited, effect: c == accepted, play: func(p postCall) { p.answer(play) }}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// postRows are the faults of creates and messages that can be mixed.
func postRows() []postRow {
	connectionRefused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	unknownHost := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "agent.invalid", IsNotFound: true}}
	failing := func(err error) agentapi.Dial {
		return func(context.Context, string, string) (net.Conn, error) { return nil, err }
	}
	return []postRow{
		{row: rowID('C', 1), weight: 3, make: func(u *user) *postFault {
			f := &postFault{class: neverSent, times: 1 + u.random.IntN(4), dial: failing(pick(u.random, connectionRefused, unknownHost))}
			if u.tls && u.random.IntN(2) == 0 {
				f.dial = resetEarly // in the handshake
			}
			if u.random.IntN(8) == 0 {
				f.times, f.final = 1<<20, true // until the deadline
			}
			return f
		}},
		{row: rowID('C', 2), weight: 8, tls: true, make: func(u *user) *postFault {
			return &postFault{class: neverSent, final: true, times: 1, dial: pick(u.random, u.bad...).Dial}
		}},
		{row: rowID('C', 3), weight: 3, create: true, make: func(u *user) *postFault {
			if !u.tls && u.random.IntN(6) == 0 { // nobody here can know that nothing was read
				return &postFault{class: unknownOutcome, final: true, times: 1, dial: resetEarly}
			}
			return either(u.random, brokenOff(u.random))
		}},
		{row: rowID('C', 4), weight: 3, make: func(u *user) *postFault {
			return either(u.random, faultserver.Answer(pick(u.random, 500, 502, 503, 504), `{"error":"try later"}`, "Retry-After: 1"))
		}},
		{row: rowID('C', 5), weight: 3, make: func(u *user) *postFault {
			f, broken := either(u.random, nil), noRecord(u.random)
			f.play = func(p postCall) { p.answer(broken(p.body)) }
			return f
		}},
		{row: rowID('C', 6), weight: 3, make: func(u *user) *postFault {
			id := pick(u.random, "a/b", "../../secrets", "job\x00", "job\x1b[2J", "a%2fb", "a b", "a?b", "job\u202e1", strings.Repeat("a", 300), "x/"+harness.CanaryKey)
			return either(u.random, faultserver.Answer(201, matrix.JobJSON(attrs{"id": id})))
		}},
		{row: rowID('C', 7), weight: 2, create: true, make: func(*user) *postFault {
			return &postFault{class: accepted, effect: true, final: true, play: func(p postCall) { p.answer(faultserver.Answer(200, p.body)) }}
		}},
		{row: rowID('C', 8), weight: 3, make: func(u *user) *postFault {
			return answering(refused, faultserver.Answer(pick(u.random, 400, 401, 403, 404, 409, 413, 422), refusalBody(u.random)))
		}},
		{row: rowID('C', 9), weight: 4, make: func(u *user) *postFault { return u.limiting(false) }},
		{row: rowID('P', 12), weight: 1, make: func(u *user) *postFault { return u.limiting(true) }},
		{row: rowID('C', 10), weight: 3, make: func(u *user) *postFault {
			location := pick(u.random, u.URL+"/v2/agent/proj_1/job", "http://192.0.2.7/v2/agent/proj_1/job", "https://agent.invalid/")
			return answering(refused, faultserver.Answer(pick(u.random, 301, 302, 303, 307, 308), "", "Location: "+location))
		}},
		{row: rowID('C', 13), weight: 2, make: func(u *user) *postFault {
			return either(u.random, pick(u.random, faultserver.Oversize(201, 2<<20), faultserver.Slow(201, matrix.JobJSON(nil), 9*time.Second), faultserver.GzipBomb(201, 2<<20)))
		}},
		{row: rowID('M', 3), weight: 8, message: true, make: func(u *user) *postFault {
			return answering(refused, faultserver.Answer(pick(u.random, 400, 404, 409, 410), `{"error":"it is closed"}`))
		}},
		{row: rowID('M', 4), weight: 14, message: true, make: func(u *user) *postFault {
			return either(u.random, pick(u.random, brokenOff(u.random), faultserver.Answer(200, ""), faultserver.Answer(200, matrix.JobJSON(attrs{"id": "job_other"}))))
		}},
		{row: rowID('P', 5), weight: 2, make: func(u *user) *postFault {
			fields := oddFields(u.random)
			return &postFault{class: accepted, effect: true, final: true, play: func(p postCall) {
				p.answer(faultserver.Answer(200, laidOver(p.body, fields)))
			}}
		}},
		{row: rowID('X', 1), weight: 2, make: func(u *user) *postFault {
			took := moment(u.random) % (50 * time.Second)
			return &postFault{class: accepted, effect: true, final: true, play: func(p postCall) {
				p.interrupt()
				time.Sleep(took)
				p.answer(faultserver.Answer(200, p.body))
			}}
		}},
		{row: rowID('X', 3), weight: 2, make: func(u *user) *postFault {
			after := moment(u.random) % (30 * time.Second)
			return &postFault{class: limited, final: true, play: func(p postCall) {
				p.alarm(after)
				p.answer(faultserver.Answer(429, "", "Retry-After: 40"))
			}}
		}},
	}
}

// resetEarly is a connection that the other side ends when it has read a byte.
func resetEarly(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go faultserver.ResetEarly(server)
	return client, nil
}

// brokenOff ends an exchange without an answer.
func brokenOff(r *rand.Rand) faultserver.Play {
	return pick(r, faultserver.Reset, faultserver.EOF, faultserver.Raw("HTTP/1.1 201 Cre"), faultserver.Stall,
		faultserver.Raw("HTTP/1.1 201 Created\r\n"+harness.CanaryKey+"\r\n\r\n"))
}

// noRecord answers with something that is no whole job record.
func noRecord(r *rand.Rand) func(whole string) faultserver.Play {
	fixed := pick(r,
		faultserver.Answer(201, ""), faultserver.Raw("HTTP/1.1 204 No Content\r\n\r\n"), faultserver.Answer(201, matrix.JobJSON(attrs{"id": matrix.Omit{}})),
		faultserver.Answer(201, matrix.JobJSON(attrs{"id": ""})), faultserver.Answer(201, matrix.JobJSON(attrs{"id": nil})),
		faultserver.Answer(201, matrix.JobJSON(attrs{"id": 17})), faultserver.Answer(201, "<html>welcome"))
	return pick(r,
		func(whole string) faultserver.Play { return faultserver.Answer(201, whole[:len(whole)/2]) },
		func(whole string) faultserver.Play { return faultserver.Truncated(201, whole, len(whole)/2) },
		func(whole string) faultserver.Play { return faultserver.Answer(201, `{"id":"job_1",`+whole[1:]) },
		func(whole string) faultserver.Play { return faultserver.Answer(201, whole+whole) },
		func(whole string) faultserver.Play { return faultserver.Answer(201, "["+whole+"]") },
		func(string) faultserver.Play { return fixed })
}

func refusalBody(r *rand.Rand) string {
	return pick(r, `{"error":"no"}`, `{"error":{"message":"no"}}`, `{"title":"Bad","detail":"no"}`, "<!doctype html><p>no", "",
		`{"error":"unknown key `+harness.CanaryKey+`"}`, strings.Repeat("x", 500)+harness.CanaryKey)
}

// limiting answers 429, with a pause header in one of the ways there are.
func (u *user) limiting(skewed bool) *postFault {
	seconds := pick(u.random, 0, 1, 5, 40, 300)
	lines := pick(u.random, matrix.Header(fmt.Sprintf("Retry-After: %d", seconds)), matrix.Header(), matrix.Header("Retry-After: -5"), matrix.Header("Retry-After: soon"),
		matrix.Header("Retry-After: 7200"), matrix.Dates(45*time.Second, 0, true), matrix.Dates(-time.Hour, 0, true))
	if skewed {
		lines = matrix.Dates(45*time.Second, pick(u.random, -time.Hour, time.Hour), true)
	}
	return &postFault{class: limited, play: func(p postCall) {
		header := lines(time.Now())
		p.rootModule.mu.Lock()
		p.postRest.begin(retryAfterSeconds(header))
		p.rootModule.mu.Unlock()
		p.answer(matrix.Limited(matrix.Header(header...)))
	}}
}

// retryAfterSeconds is the pause that header lines give in seconds, else 0.
func retryAfterSeconds(lines []string) time.Duration {
	var seconds int
	if len(lines) == 1 {
		_, _ = fmt.Sscanf(lines[0], "Retry-After: %d", &seconds)
	}
	return time.Duration(max(seconds, 0)) * time.Second
}

// dialFault is what happens to a connection for a POST; nil: it comes about.
func (u *user) dialFault() agentapi.Dial {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.applying || len(u.posts) == 0 || u.posts[0].dial == nil {
		return nil
	}
	f := u.posts[0]
	if !f.began {
		u.played(f.row)
	}
	f.began = true
	if f.times--; f.times == 0 {
		u.posts = u.posts[1:]
	}
	if f.class == unknownOutcome {
		u.sent = append(u.sent, sent{at: time.Now(), kind: u.kind, prompt: u.prompt, fault: f.row, class: f.class})
	}
	return f.dial
}

// answerPost answers a POST that was read whole.
func (u *user) answerPost(kind faultserver.Kind, prompt string, x *faultserver.Exchange) {
	f := &postFault{class: accepted, effect: true}
	u.playing.Add(1)
	defer u.playing.Done()
	u.mu.Lock()
	if len(u.posts) > 0 {
		f, u.posts = u.posts[0], u.posts[1:]
		u.played(f.row)
	}
	u.mu.Unlock()
	s := sent{at: time.Now(), kind: kind, prompt: prompt, fault: f.row, class: f.class}
	p := postCall{u, x, matrix.JobJSON(nil)}
	refusal := 0
	if f.effect {
		recorder := httptest.NewRecorder()
		u.sim.ServeHTTP(recorder, x.Request)
		p.body = recorder.Body.String()
		var record struct{ ID string }
		if recorder.Code < 300 && json.Unmarshal(recorder.Body.Bytes(), &record) == nil {
			s.job = record.ID
		} else if s.class == accepted {
			s.class, refusal = refused, recorder.Code
		}
	}
	u.mu.Lock()
	u.sent = append(u.sent, s)
	u.mu.Unlock()
	u.log("%s %q %s %s, effect on %q", kind, prompt, f.row, s.class, s.job)
	if s.class == unknownOutcome && kind == faultserver.Message {
		u.slacken(20) // looks for its effect, which no budget holds back
	}
	switch {
	case refusal != 0:
		p.answer(faultserver.Answer(refusal, p.body))
	case f.play == nil:
		p.answer(faultserver.Answer(201, p.body))
	default:
		f.play(p)
	}
	u.mu.Lock()
	u.answered = time.Now()
	u.mu.Unlock()
}

// alarm interrupts after a while, unless the call has ended before.
func (u *user) alarm(after time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.alarms = append(u.alarms, time.AfterFunc(after, u.interrupt))
}

func readPrompt(x *faultserver.Exchange) (body []byte, prompt string) {
	var fields struct{ Prompt string }
	body, err := io.ReadAll(x.Request.Body)
	if err != nil || json.Unmarshal(body, &fields) != nil {
		panic("a body that is not ours")
	}
	return body, fields.Prompt
}
