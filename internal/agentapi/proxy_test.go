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
	"strings"
	"sync/atomic"
	"testing"

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

// A proxy's refusal is final, its troubles may pass.
func TestProxy_C14(t *testing.T) {
	t.Parallel()
	environment := reflect.ValueOf(http.ProxyFromEnvironment).Pointer() // which reads it once, and excepts loopback addresses
	forPOSTs, forGETs := newTransports(Config{})
	if reflect.ValueOf(forPOSTs.Proxy).Pointer() != environment || reflect.ValueOf(forGETs.Proxy).Pointer() != environment {
		t.Error("HTTPS_PROXY is ignored")
	}
	create := func(ctx context.Context, c *Client) (*Job, error) { return c.CreateJob(ctx, "p", "x", nil) }
	get := func(ctx context.Context, c *Client) (*Job, error) { return c.GetJob(ctx, "p", "job_1") }
	poll := func(ctx context.Context, c *Client) (*Job, error) { return c.PollJob(ctx, "p", "job_1") }
	for name, tc := range map[string]struct {
		call     func(context.Context, *Client) (*Job, error)
		statuses []int
		connects int64 // 0: the proxy cannot be reached
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
		"poll, unreachable": {poll, nil, 0, ErrUnavailable, "no connection to the proxy: dial tcp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := startServer(t, faultserver.Options{Certificate: faultserver.GoodCertificate})
			address, connects := startProxy(t, tc.statuses...)
			if tc.connects == 0 {
				address = "127.0.0.1:0"
			}
			for _, transport := range []http.RoundTripper{c.postTransport, c.getTransport} {
				transport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: address})
			}
			job, err := tc.call(t.Context(), c)
			wantPosts := 0
			if tc.is == nil {
				wantPosts = 1
				if err != nil || job.ID != "job_1" {
					t.Errorf("%v, %v, want the job", job, err)
				}
			} else if !errors.Is(err, tc.is) || !errors.Is(err, ErrProxy) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, %v, want %v and ErrProxy with %q", job, err, tc.is, tc.says)
			}
			if posts := s.Count(faultserver.Create); posts != wantPosts || connects.Load() != tc.connects {
				t.Errorf("%d POSTs and %d CONNECTs, want %d and %d", posts, connects.Load(), wantPosts, tc.connects)
			}
		})
	}
}
