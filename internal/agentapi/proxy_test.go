// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// startProxy answers its first CONNECTs with these statuses and tunnels the rest.
func startProxy(t *testing.T, statuses ...int) (address string, connects *atomic.Int64) {
	t.Helper()
	connects = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Header.Get("Authorization") != "" {
			t.Errorf("the proxy got %s with the headers %v", r.Method, r.Header)
		}
		if n := int(connects.Add(1)); n <= len(statuses) {
			w.Header().Set("Proxy-Authenticate", "Basic")
			w.WriteHeader(statuses[n-1])
			return
		}
		service, err := net.Dial("tcp", r.Host)
		if err != nil {
			t.Error(err)
			return
		}
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(client, service); _ = client.Close() }()
		_, _ = io.Copy(service, client)
		_ = service.Close()
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), connects
}

// What a proxy refuses has not reached the service.
func TestProxy_C14(t *testing.T) {
	t.Parallel()
	environment := reflect.ValueOf(http.ProxyFromEnvironment).Pointer() // which reads it once, and excepts loopback addresses
	forPOSTs, forGETs := newTransports(Config{})
	if reflect.ValueOf(forPOSTs.Proxy).Pointer() != environment || reflect.ValueOf(forGETs.Proxy).Pointer() != environment {
		t.Error("HTTPS_PROXY is ignored")
	}
	for name, tc := range map[string]struct {
		statuses []int
		connects int64
		is       error // nil: the job
		says     string
	}{
		"tunnel":      {nil, 1, nil, ""},
		"503":         {[]int{503}, 2, nil, ""},
		"407":         {slices.Repeat([]int{407}, 100), -1, ErrNotSent, "Proxy Authentication Required"},
		"unreachable": {nil, 0, ErrNotSent, "no connection to the service: proxyconnect tcp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := startServer(t, faultserver.Options{Certificate: faultserver.GoodCertificate})
			address, connects := startProxy(t, tc.statuses...)
			if tc.connects == 0 {
				address = "127.0.0.1:0"
			}
			c.postTransport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: address})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			job, err := c.CreateJob(ctx, "p", "x", nil)
			wantPosts := 0
			if tc.is == nil {
				wantPosts = 1
				if err != nil || job.ID != "job_1" {
					t.Errorf("%v, %v, want the job", job, err)
				}
			} else if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, %v, want %v with %q", job, err, tc.is, tc.says)
			}
			if posts := s.Count(faultserver.Create); posts != wantPosts || tc.connects >= 0 && connects.Load() != tc.connects {
				t.Errorf("%d POSTs and %d CONNECTs, want %d and %d", posts, connects.Load(), wantPosts, tc.connects)
			}
		})
	}
}
