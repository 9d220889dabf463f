// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// startProxy answers its first CONNECTs with the statuses given, and tunnels
// the rest. It returns how many CONNECTs came.
func startProxy(t *testing.T, statuses ...int) (address string, connects func() int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	count := 0
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			open.Go(func() {
				defer func() { _ = conn.Close() }()
				reader := bufio.NewReader(conn)
				r, err := http.ReadRequest(reader)
				if err != nil || r.Method != http.MethodConnect {
					return
				}
				if r.Header.Get("Authorization") != "" {
					t.Error("the proxy was shown the key")
				}
				mu.Lock()
				n := count
				count++
				mu.Unlock()
				if n < len(statuses) {
					write(conn, statuses[n], "no", "Proxy-Authenticate: Basic")
					return
				}
				to, err := net.Dial("tcp", r.Host)
				if err != nil {
					return
				}
				defer func() { _ = to.Close() }()
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
				var back sync.WaitGroup
				back.Go(func() { _, _ = io.Copy(conn, to); _ = conn.Close() })
				_, _ = io.Copy(to, reader)
				_ = to.Close()
				back.Wait()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, conn := range conns {
			_ = conn.Close()
		}
		mu.Unlock()
		open.Wait()
	})
	return listener.Addr().String(), func() int { mu.Lock(); defer mu.Unlock(); return count }
}

// C14: a proxy's refusal is final, its troubles may pass.
func TestProxy(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t, time.Now().Add(time.Hour), net.IPv4(127, 0, 0, 1))
	create := func(ctx context.Context, c *Client) (*Job, error) { return c.CreateJob(ctx, "p", "x") }
	get := func(ctx context.Context, c *Client) (*Job, error) { return c.GetJob(ctx, "p", "job_1") }
	poll := func(ctx context.Context, c *Client) (*Job, error) { return c.PollJob(ctx, "p", "job_1") }
	for name, tc := range map[string]struct {
		call     func(context.Context, *Client) (*Job, error)
		statuses []int // nil: it tunnels; 0: it cannot be reached
		connects int
		is       error // nil: the job
		says     string
	}{
		"tunnel":            {create, nil, 1, nil, ""},
		"407":               {create, []int{407}, 1, ErrNotSent, "407"},
		"400":               {create, []int{400}, 1, ErrNotSent, "400"},
		"500 passes":        {create, []int{500}, 2, nil, ""},
		"503, then 407":     {create, []int{503, 407}, 2, ErrNotSent, "407"},
		"302 is no tunnel":  {create, []int{302}, 2, nil, ""},
		"GET, 502 then 407": {get, []int{502, 407}, 2, ErrRefused, "407"},
		"poll, 502":         {poll, []int{502}, 1, ErrUnavailable, "the proxy refused the connection with 502 Bad Gateway"},
		"poll, unreachable": {poll, []int{0}, 0, ErrUnavailable, "no connection to the proxy: dial tcp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startService(t, withTLS(cert), reply(201, record))
			address, connects := startProxy(t, tc.statuses...)
			if tc.connects == 0 {
				address = "127.0.0.1:0"
			}
			c := newClient(t, s.url, func(config *Config) { config.RootCAs = pool })
			for _, transport := range []http.RoundTripper{c.postTransport, c.getTransport} {
				transport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: address})
			}
			job, err := tc.call(t.Context(), c)
			if tc.is == nil {
				if err != nil || job.ID != "job_1" {
					t.Errorf("%v, %v, want the job", job, err)
				}
				s.wantPosts(t, 1)
			} else {
				if !errors.Is(err, tc.is) || !errors.Is(err, ErrProxy) || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%v, %v, want %v and ErrProxy with %q", job, err, tc.is, tc.says)
				}
				s.wantPosts(t, 0)
			}
			if got := connects(); got != tc.connects {
				t.Errorf("%d CONNECTs, want %d", got, tc.connects)
			}
		})
	}
}
