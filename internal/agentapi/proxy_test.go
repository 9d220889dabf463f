// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"bufio"
	"errors"
	"fmt"
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

// TestProxy is row C14: a proxy's refusal is final, its troubles may pass.
func TestProxy(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t, time.Now().Add(time.Hour), net.IPv4(127, 0, 0, 1))
	for name, tc := range map[string]struct {
		statuses []int
		connects int
		refused  bool
	}{
		"tunnel":           {nil, 1, false},
		"407":              {[]int{407}, 1, true},
		"403":              {[]int{403}, 1, true},
		"500 passes":       {[]int{500}, 2, false},
		"502 passes":       {[]int{502}, 2, false},
		"503, then 407":    {[]int{503, 407}, 2, true},
		"302 is no tunnel": {[]int{302}, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startService(t, withTLS(cert), reply(201, record))
			address, connects := startProxy(t, tc.statuses...)
			c := newClient(t, s.url, func(config *Config) { config.RootCAs = pool })
			c.postTransport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: address})
			job, err := c.CreateJob(t.Context(), "p", "x")
			posts := 1
			if tc.refused {
				posts = 0
				last := fmt.Sprint(tc.statuses[len(tc.statuses)-1])
				if job != nil || !errors.Is(err, ErrNotSent) || !errors.Is(err, ErrProxy) || !strings.Contains(err.Error(), last) {
					t.Errorf("%v, %v, want ErrNotSent and ErrProxy with %s", job, err, last)
				}
			} else if err != nil || job.ID != "job_1" {
				t.Errorf("%v, %v, want the job", job, err)
			}
			s.wantPosts(t, posts)
			if got := connects(); got != tc.connects {
				t.Errorf("%d CONNECTs, want %d", got, tc.connects)
			}
		})
	}
}

// TestProxyOfGETs: GetJob ends with a proxy's refusal too, instead of trying on.
func TestProxyOfGETs(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t, time.Now().Add(time.Hour), net.IPv4(127, 0, 0, 1))
	s := startService(t, withTLS(cert), reply(200, record))
	address, connects := startProxy(t, 502, 407)
	c := newClient(t, s.url, func(config *Config) { config.RootCAs = pool })
	c.getTransport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: address})
	if _, err := c.GetJob(t.Context(), "p", "job_1"); !errors.Is(err, ErrRefused) || !errors.Is(err, ErrProxy) {
		t.Errorf("%v, want ErrRefused and ErrProxy", err)
	}
	if got := connects(); got != 2 {
		t.Errorf("%d CONNECTs, want 2", got)
	}
	s.wantPosts(t, 0)
}

// TestTroubleOfAProxyIsNamed: it may pass, and it is not the service's.
func TestTroubleOfAProxyIsNamed(t *testing.T) {
	t.Parallel()
	refusing, _ := startProxy(t, 502)
	for name, tc := range map[string]struct{ address, says string }{
		"refuses":     {refusing, "the proxy refused the connection with 502 Bad Gateway"},
		"unreachable": {"127.0.0.1:0", "no connection to the proxy: dial tcp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, "https://service.invalid")
			c.getTransport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: tc.address})
			_, err := c.PollJob(t.Context(), "p", "job_1")
			if !errors.Is(err, ErrUnavailable) || !errors.Is(err, ErrProxy) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want ErrUnavailable, ErrProxy and %q", err, tc.says)
			}
		})
	}
}
