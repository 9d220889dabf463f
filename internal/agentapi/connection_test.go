// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// unused returns an address at which nothing listens.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// TestRefusedConnectionIsTriedAgain is row C01 over TCP.
func TestRefusedConnectionIsTriedAgain(t *testing.T) {
	t.Parallel()
	address := unused(t)
	var tries []Exchange
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := newClient(t, "http://"+address, func(config *Config) {
		config.Log = func(_ context.Context, e Exchange) {
			if tries = append(tries, e); len(tries) == 2 {
				cancel()
			}
		}
	})
	job, err := c.CreateJob(ctx, "p", "x")
	if failure, _ := errors.AsType[*Error](err); job != nil || !errors.Is(err, ErrNotSent) || failure.StatusCode != 0 {
		t.Errorf("%v, %v, want ErrNotSent", job, err)
	}
	if len(tries) != 2 {
		t.Errorf("%d tries, want 2", len(tries))
	}
	for _, e := range tries {
		if e.Err == nil || e.StatusCode != 0 || e.RequestSize == 0 {
			t.Errorf("exchange %+v, want a failure without an answer", e)
		}
	}
}

// TestLostAnswerIsUnknown is row C03: whatever happens after the request was
// written, it is not sent again.
func TestLostAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	text := func(answer string) script {
		return func(conn net.Conn, _ *http.Request, _ int) {
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	}
	for name, answer := range map[string]script{
		"reset":               func(conn net.Conn, _ *http.Request, _ int) { reset(conn) },
		"EOF":                 func(conn net.Conn, _ *http.Request, _ int) { _ = conn.Close() },
		"half a status line":  text("HTTP/1.1 2"),
		"half a header":       text("HTTP/1.1 201 Created\r\nContent-Le"),
		"no HTTP":             text("220 mail.invalid ESMTP\r\n"),
		"half a body":         text("HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{\"id\":\"job_1\""),
		"half a chunk":        text("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n" + record),
		"whole but too short": text("HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n" + record),
		"broken gzip":         text("HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello"),
		"long header":         text("HTTP/1.1 201 Created\r\n" + strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 100) + "\r\n" + record),
		"server error":        reply(502, "<html>"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startService(t, nil, answer)
			c := newClient(t, s.url)
			job, err := c.CreateJob(t.Context(), "p", "x")
			if job != nil || !errors.Is(err, ErrUnknownOutcome) {
				t.Errorf("CreateJob: %v, %v, want ErrUnknownOutcome", job, err)
			}
			s.wantPosts(t, 1)
			job, err = c.SendMessage(t.Context(), "p", "job_1", "x")
			if job != nil || !errors.Is(err, ErrUnknownOutcome) {
				t.Errorf("SendMessage: %v, %v, want ErrUnknownOutcome", job, err)
			}
			s.wantPosts(t, 2)
			if got := s.counted(); got.conns != 2 {
				t.Errorf("%d connections, want 2", got.conns)
			}
		})
	}
}

// TestIdleConnectionClosed is row C12: the server closes each connection just
// when a second request arrives on it, the moment at which Go sends again.
func TestIdleConnectionClosed(t *testing.T) {
	t.Parallel()
	s := startService(t, nil, func(conn net.Conn, _ *http.Request, n int) {
		if n > 1 {
			reset(conn)
			return
		}
		write(conn, 200, record, "Connection: keep-alive")
	})
	c := newClient(t, s.url)
	for i := range 5 {
		if _, err := c.CreateJob(t.Context(), "p", "x"); err != nil {
			t.Errorf("POST %d: %v", i, err)
		}
		if _, err := c.GetJob(t.Context(), "p", "job_1"); err != nil {
			t.Errorf("GET %d: %v", i, err)
		}
	}
	s.wantPosts(t, 5)
}

// TestConnectionsOfGETs: as many as are used at once are kept, and none for ever.
func TestConnectionsOfGETs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers = 128
		var dials, open atomic.Int64
		c := newClient(t, "http://127.0.0.1", func(config *Config) {
			config.Dial = func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				dials.Add(1)
				open.Add(1)
				go func() {
					defer open.Add(-1)
					reader := bufio.NewReader(far)
					for {
						if _, err := http.ReadRequest(reader); err != nil {
							return
						}
						time.Sleep(time.Second) // until all have asked
						write(far, 200, record)
					}
				}()
				return near, nil
			}
		})
		for range 3 {
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					if _, err := c.GetJob(t.Context(), "p", "job_1"); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			synctest.Wait() // the connections are idle again
		}
		if dials.Load() != callers {
			t.Errorf("%d connections for %d callers", dials.Load(), callers)
		}
		time.Sleep(2 * time.Minute)
		if open.Load() != 0 {
			t.Errorf("%d connections are open after two idle minutes", open.Load())
		}
	})
}

// TestAnswerIsBounded is row C13.
func TestAnswerIsBounded(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range 8 {
		_, _ = z.Write(zeros)
	}
	_ = z.Close()
	for name, tc := range map[string]struct {
		answer script
		is     error
	}{
		"10 MB":         {reply(201, `{"id":"job_1","x":"`+strings.Repeat("x", 10<<20)+`"}`), errTooLarge},
		"1 MiB and one": {reply(201, record+strings.Repeat(" ", maxBody+1-len(record))), errTooLarge},
		"1 MiB":         {reply(201, record+strings.Repeat(" ", maxBody-len(record))), nil},
		"gzip bomb":     {reply(201, bomb.String(), "Content-Encoding: gzip"), errTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startService(t, nil, tc.answer)
			size := -1
			c := newClient(t, s.url, func(config *Config) {
				config.Log = func(_ context.Context, e Exchange) { size = e.AnswerSize }
			})
			job, err := c.CreateJob(t.Context(), "p", "x")
			s.wantPosts(t, 1)
			if size > maxBody {
				t.Errorf("%d bytes of the answer were kept, want at most %d", size, maxBody)
			}
			if tc.is == nil {
				if err != nil || job.ID != "job_1" {
					t.Errorf("%v, %v, want the job", job, err)
				}
				return
			}
			if !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, tc.is) {
				t.Errorf("%v, want ErrUnknownOutcome and %v", err, tc.is)
			}
		})
	}
}

// TestSlowAnswerEndsInTime is the slow-loris of row C13, on pipes and a fake clock.
func TestSlowAnswerEndsInTime(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]script{
		"body": slowly("HTTP/1.1 201 Created\r\nContent-Length: 1000\r\n\r\n", strings.Repeat(" ", 900)),
		"head": slowly("", "HTTP/1.1 201 Created\r\n"+strings.Repeat("X-A: b\r\n", 100)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := new(service)
				c := newClient(t, "http://service.invalid", func(config *Config) {
					config.Dial = func(context.Context, string, string) (net.Conn, error) {
						client, server := net.Pipe()
						s.open.Go(func() { s.serve(server, answer) })
						return client, nil
					}
				})
				start := time.Now()
				_, err := c.CreateJob(t.Context(), "p", "x")
				if took := time.Since(start); !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, errTimeout) || took != c.requestTimeout {
					t.Errorf("%v after %s, want ErrUnknownOutcome and errTimeout after %s", err, took, c.requestTimeout)
				}
				s.open.Wait()
				s.wantPosts(t, 1)
			})
		})
	}
}

// TestLittleIsRead: of an answer that is too large no more is read than shows it.
func TestLittleIsRead(t *testing.T) {
	t.Parallel()
	read := 0
	c := newFakeClient(t, nil)
	c.getTransport = roundTripper(func(*http.Request) (*http.Response, error) {
		body := readerFunc(func(p []byte) (int, error) {
			if read > 8*maxBody {
				return 0, io.EOF
			}
			read += len(p)
			return len(p), nil
		})
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(body)}, nil
	})
	if _, err := c.PollJob(t.Context(), "p", "job_1"); !errors.Is(err, errTooLarge) || read > maxBody+1 {
		t.Errorf("%v after %d bytes, want errTooLarge after %d", err, read, maxBody+1)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// slowly sends the first text at once and the second byte by byte.
func slowly(at, drip string) script {
	return func(conn net.Conn, _ *http.Request, _ int) {
		_, _ = io.WriteString(conn, at)
		for i := range len(drip) {
			if _, err := io.WriteString(conn, drip[i:i+1]); err != nil {
				return
			}
			time.Sleep(time.Second)
		}
	}
}
