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
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// As many as are used at once are kept, and none for ever.
func TestExchange_pooledConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers = 128
		s, c := startServer(t, faultserver.Options{InMemory: true})
		s.Always(faultserver.Get, func(x *faultserver.Exchange) {
			time.Sleep(time.Second) // until all have asked
			faultserver.Healthy(x)
		})
		for i, dials := range []int{callers, callers, 2 * callers} {
			time.Sleep(time.Duration(i) * time.Minute) // the third time, the connections have idled too long
			var all sync.WaitGroup
			for range callers {
				all.Go(func() { _, _ = c.ReadJob(t.Context(), "p", "job_1") })
			}
			all.Wait()
			synctest.Wait() // the connections are idle again
			if s.Dials() != dials {
				t.Errorf("%d connections for %d callers, want %d", s.Dials(), callers, dials)
			}
		}
	})
}

// A dead address must leave time for the next one.
func TestNewDialer_requestTimeout(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{10 * time.Second: 10 * time.Second, time.Hour: 30 * time.Second} {
		if got := newDialer(timeout).Timeout; got != want {
			t.Errorf("%v for all addresses within a request timeout of %v, want %v", got, timeout, want)
		}
	}
}

// A handshake that hangs leaves time to try again within one call.
func TestTLS_hangingHandshake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := startServer(t, faultserver.Options{InMemory: true, TLS: true})
		s.OnConnect(func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
		start := time.Now()
		if _, err := c.PollJob(t.Context(), "p", "job_1"); !errors.Is(err, ErrUnavailable) || time.Since(start) != 15*time.Second {
			t.Errorf("%v after %v, want ErrUnavailable after 15s", err, time.Since(start))
		}
	})
}

// What a proxy refuses has not reached the service, and is sent again.
func TestProxy_C14(t *testing.T) {
	t.Parallel()
	environment := reflect.ValueOf(http.ProxyFromEnvironment).Pointer() // which reads it once, and excepts loopback addresses
	forPOSTs, forGETs := newTransports(Config{})
	if reflect.ValueOf(forPOSTs.Proxy).Pointer() != environment || reflect.ValueOf(forGETs.Proxy).Pointer() != environment {
		t.Error("HTTPS_PROXY is ignored")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var proxy sync.WaitGroup
	proxy.Go(func() {
		for _, status := range []int{407, 503, 200} {
			client, err := listener.Accept()
			if err != nil {
				t.Errorf("no request to be answered with %d: %v", status, err)
				return
			}
			r, err := http.ReadRequest(bufio.NewReader(client))
			if err != nil || r.Method != http.MethodConnect || r.Header.Get("Authorization") != "" {
				t.Errorf("the proxy got %v, %+v", err, r)
			}
			_, _ = fmt.Fprintf(client, "HTTP/1.1 %d \r\n\r\n", status)
			if status == http.StatusOK {
				service, err := net.Dial("tcp", r.Host)
				if err != nil {
					t.Error(err)
					return
				}
				go func() { _, _ = io.Copy(client, service) }()
				_, _ = io.Copy(service, client)
				_ = service.Close()
			}
			_ = client.Close()
		}
	})
	s, c := startServer(t, faultserver.Options{TLS: true})
	transport, _ := c.postTransport.(*http.Transport)
	transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: listener.Addr().String()})
	if job, err := c.CreateJob(t.Context(), "p", "x", new(recorder)); err != nil || job.ID != "job_1" {
		t.Errorf("%v, %v, want the job", job, err)
	}
	_ = listener.Close()
	proxy.Wait()
	if posts := s.Count(faultserver.Create); posts != 1 {
		t.Errorf("%d POSTs, want 1", posts)
	}
}
