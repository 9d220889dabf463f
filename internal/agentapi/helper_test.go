// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"syscall"
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

// startServer returns a client of a server that offers HTTP/2, too, below a path.
func startServer(t *testing.T, path string, handler http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return newClient(t, s.URL+path, func(config *Config) {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AddCert(s.Certificate())
	})
}

// raw sends exactly this, lets each play do what follows on the connection, and closes it.
func raw(text string, plays ...func(*tls.Conn)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := http.NewResponseController(w).Hijack() // HTTP/1.1 allows it
		_, _ = io.WriteString(conn, text)
		for _, play := range plays {
			play(conn.(*tls.Conn))
		}
		_ = conn.Close()
	}
}

// reset ends a connection with RST instead of FIN.
func reset(conn *tls.Conn) {
	_ = conn.NetConn().(*net.TCPConn).SetLinger(0)
	_ = conn.NetConn().Close()
}

// trickle sends a character now and then until the client has had enough.
func trickle(conn *tls.Conn) {
	for err := error(nil); err == nil; time.Sleep(50 * time.Millisecond) {
		_, err = io.WriteString(conn, " ")
	}
}

// answer is what the service sends back; the zero value stands for a refused connection.
type answer struct {
	status  int
	header  http.Header
	body    string
	latency time.Duration
	dial    func(context.Context) error // nil: connects at once
}

// after is an answer that comes late.
func (a answer) after(latency time.Duration) answer {
	a.latency = latency
	return a
}

var (
	accepted             = answer{status: 201, body: record}
	errConnRefused error = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
)

func limited(retryAfter string) answer {
	return answer{status: 429, header: http.Header{"Retry-After": {retryAfter}}}
}

// fakeService is a transport with a service behind it, for tests on a fake clock.
type fakeService struct {
	answers []answer // in turn; the last one stays

	mu    sync.Mutex
	dials int
	posts []time.Time // whose bodies were read whole
}

func (f *fakeService) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	a := f.answers[min(f.dials, len(f.answers)-1)]
	f.dials++
	f.mu.Unlock()
	if a.dial != nil {
		if err := a.dial(r.Context()); err != nil {
			return nil, err
		}
	}
	if a.status == 0 {
		return nil, errConnRefused
	}
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
	if r.Method == http.MethodPost {
		if _, err := io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		f.mu.Lock()
		f.posts = append(f.posts, time.Now())
		f.mu.Unlock()
	}
	if err := sleep.For(r.Context(), a.latency); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

// newFakeClient returns a client whose requests all go to f.
func newFakeClient(t testing.TB, f *fakeService, change ...func(*Config)) *Client {
	c := newClient(t, "https://service.invalid", change...)
	c.postTransport, c.getTransport = f, f
	return c
}
