// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// canary is a key that no output may show.
const canary = "mint_CANARY7f3a9c"

// record is a whole job record with the id job_1.
const record = `{"id":"job_1","status":"active"}`

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newClient returns a client of the service at base.
func newClient(t testing.TB, base string, change ...func(*Config)) *Client {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	config := Config{BaseURL: u, Key: NewKey(canary), UserAgent: "test/1", RequestTimeout: time.Minute, MaxPollsPerSecond: 1000}
	for _, f := range change {
		f(&config)
	}
	c := New(config)
	pooled := c.getTransport.(*http.Transport)
	t.Cleanup(pooled.CloseIdleConnections)
	return c
}

// service is a scripted HTTP/1.1 server on a listener of its own.
type service struct {
	url string

	mu    sync.Mutex
	conns []net.Conn
	posts int // whose bodies were read whole
	gets  int
	bytes int // received
	open  sync.WaitGroup
}

// script answers request number n (from 1) of a connection; closing the
// connection is the end of it.
type script func(conn net.Conn, r *http.Request, n int)

// startService serves until the test ends. wrap may put TLS or a fault between.
func startService(t testing.TB, wrap func(net.Listener) net.Listener, answer script) *service {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{url: "http://" + tcp.Addr().String()}
	listener := tcp
	if wrap != nil {
		listener = wrap(tcp)
		s.url = "https://" + tcp.Addr().String()
	}
	s.open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			s.open.Go(func() { s.serve(conn, answer) })
		}
	})
	t.Cleanup(func() {
		_ = tcp.Close()
		s.mu.Lock()
		for _, conn := range s.conns {
			_ = conn.Close()
		}
		s.mu.Unlock()
		s.open.Wait()
	})
	return s
}

func (s *service) serve(conn net.Conn, answer script) {
	defer func() { _ = conn.Close() }()
	reader := bufio.NewReader(countingReader{conn, s})
	for n := 1; ; n++ {
		r, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		if r.Method != http.MethodConnect {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
		}
		s.mu.Lock()
		switch r.Method {
		case http.MethodPost:
			s.posts++
		case http.MethodGet:
			s.gets++
		}
		s.mu.Unlock()
		answer(conn, r, n)
	}
}

type countingReader struct {
	net.Conn
	s *service
}

func (c countingReader) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.s.mu.Lock()
	c.s.bytes += n
	c.s.mu.Unlock()
	return n, err
}

// counted is what reached a service.
type counted struct{ posts, gets, conns, bytes int }

func (s *service) counted() counted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return counted{s.posts, s.gets, len(s.conns), s.bytes}
}

func (s *service) wantPosts(t testing.TB, want int) {
	t.Helper()
	if got := s.counted().posts; got != want {
		t.Errorf("the service read %d whole POSTs, want %d", got, want)
	}
}

// write sends an answer with a body; headers are "Name: value" lines.
func write(conn net.Conn, status int, body string, headers ...string) {
	lines := append(headers, fmt.Sprintf("Content-Length: %d", len(body)))
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d X\r\n%s\r\n\r\n%s", status, strings.Join(lines, "\r\n"), body)
}

// reply always gives the same answer.
func reply(status int, body string, headers ...string) script {
	return func(conn net.Conn, _ *http.Request, _ int) { write(conn, status, body, headers...) }
}

// fake is a transport with a service behind it, for tests on a fake clock.
type fake struct {
	dial    func(ctx context.Context, n int) error // nil: connects at once
	answer  func(n int, r *http.Request) (status int, header http.Header, body string)
	latency time.Duration

	mu      sync.Mutex
	dials   int
	posts   int // whose bodies were read whole
	sent    []sent
	gets    int
	busy    int
	maxBusy int
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.dials++
	n := f.dials
	f.mu.Unlock()
	if f.dial != nil {
		if err := f.dial(r.Context(), n); err != nil {
			return nil, err
		}
	}
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	if r.Method == http.MethodPost {
		f.posts++
		n = f.posts
		f.sent = append(f.sent, sent{time.Now(), string(body)})
	} else {
		f.gets++
		n = f.gets
	}
	f.busy++
	f.maxBusy = max(f.maxBusy, f.busy)
	f.mu.Unlock()
	err = sleep.For(r.Context(), f.latency)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy--
	if err != nil {
		return nil, err
	}
	status, header, text := f.answer(n, r)
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(text))}, nil
}

// sent is one POST that a fake received.
type sent struct {
	at   time.Time
	body string
}

// soFar returns what was sent up to now.
func (f *fake) soFar() []sent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sent)
}

// newFakeClient returns a client whose requests all go to f.
func newFakeClient(t testing.TB, f *fake, change ...func(*Config)) *Client {
	c := newClient(t, "https://service.invalid", change...)
	c.postTransport, c.getTransport = f, f
	return c
}

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}
