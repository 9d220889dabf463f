// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// certificate makes a self-signed certificate and a pool that trusts it.
func certificate(t testing.TB, ends time.Time, address net.IP) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: ends.Add(-48 * time.Hour), NotAfter: ends, IPAddresses: []net.IP{address},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func withTLS(cert tls.Certificate, protocols ...string) func(net.Listener) net.Listener {
	return func(l net.Listener) net.Listener {
		return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: protocols})
	}
}

// C02: one handshake, and no byte of a request.
func TestTLS_badCertificate(t *testing.T) {
	t.Parallel()
	local := net.IPv4(127, 0, 0, 1)
	good, goodPool := certificate(t, time.Now().Add(24*time.Hour), local)
	expired, expiredPool := certificate(t, time.Now().Add(-time.Hour), local)
	elsewhere, elsewherePool := certificate(t, time.Now().Add(24*time.Hour), net.IPv4(192, 0, 2, 1))
	for name, tc := range map[string]struct {
		cert tls.Certificate
		pool *x509.CertPool
		ok   bool
	}{
		"good":       {good, goodPool, true},
		"untrusted":  {good, expiredPool, false},
		"system's":   {good, nil, false},
		"expired":    {expired, expiredPool, false},
		"wrong name": {elsewhere, elsewherePool, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startService(t, withTLS(tc.cert), reply(201, record))
			c := newClient(t, s.url, func(config *Config) { config.RootCAs = tc.pool })
			_, err := c.CreateJob(t.Context(), "p", "x")
			_, getErr := c.GetJob(t.Context(), "p", "job_1")
			if tc.ok {
				if err != nil || getErr != nil {
					t.Fatalf("%v, %v", err, getErr)
				}
				s.wantPosts(t, 1)
				return
			}
			if !errors.Is(err, ErrNotSent) || !errors.Is(err, ErrCertificate) {
				t.Errorf("CreateJob: %v, want ErrNotSent and ErrCertificate", err)
			}
			if !errors.Is(getErr, ErrRefused) || !errors.Is(getErr, ErrCertificate) {
				t.Errorf("GetJob: %v, want ErrRefused and ErrCertificate", getErr)
			}
			if got := s.counted(); got.conns != 2 || got.posts != 0 || got.gets != 0 || got.bytes != 0 {
				t.Errorf("the service got %+v, want one handshake for each call and nothing else", got)
			}
		})
	}
}

// plain answers each connection in plain HTTP, and reads it to its end: a reset
// could overtake the answer.
type plain struct {
	net.Listener
	answered *atomic.Int64
}

func (l plain) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.answered.Add(1)
		_, _ = conn.Read(make([]byte, 1))
		write(conn, 400, "this is plain HTTP")
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}
}

// It has not had a request, and trying again does
// not change it.
func TestTLS_serverWithoutTLS(t *testing.T) {
	t.Parallel()
	var answered atomic.Int64
	s := startService(t, func(l net.Listener) net.Listener { return plain{l, &answered} }, reply(201, record))
	c := newClient(t, strings.Replace(s.url, "http://", "https://", 1))
	if _, err := c.CreateJob(t.Context(), "p", "x"); !errors.Is(err, ErrNotSent) || !errors.Is(err, ErrNoTLS) {
		t.Errorf("CreateJob: %v, want ErrNotSent and ErrNoTLS", err)
	}
	if _, err := c.PollJob(t.Context(), "p", "job_1"); !errors.Is(err, ErrRefused) || !errors.Is(err, ErrNoTLS) {
		t.Errorf("PollJob: %v, want ErrRefused and ErrNoTLS", err)
	}
	if got := answered.Load(); got != 2 {
		t.Errorf("%d connections, want one for each call", got)
	}
}

// The key is not shown to a service that offers nothing newer than TLS 1.1.
func TestTLS_oldVersion(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t, time.Now().Add(time.Hour), net.IPv4(127, 0, 0, 1))
	s := startService(t, func(l net.Listener) net.Listener {
		return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	}, reply(200, record))
	c := newClient(t, s.url, func(config *Config) { config.RootCAs = pool })
	if job, err := c.PollJob(t.Context(), "p", "job_1"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v, %v, want ErrUnavailable", job, err)
	}
	if got := s.counted(); got.conns != 1 || got.gets != 0 {
		t.Errorf("the service got %+v, want a handshake alone", got)
	}
}

// It leaves time to try again within one call.
func TestTLS_hangingHandshake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logged Exchange
		c := newClient(t, "https://127.0.0.1", func(config *Config) {
			config.Dial = func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, far) }()
				return near, nil
			}
			config.Log = func(_ context.Context, e Exchange) { logged = e }
		})
		_, err := c.PollJob(t.Context(), "p", "job_1")
		if !errors.Is(err, ErrUnavailable) || logged.Duration != 15*time.Second {
			t.Errorf("%v after %v, want ErrUnavailable after 15s", err, logged.Duration)
		}
	})
}

// C11: where a server offers HTTP/2, which sends
// requests again by itself, POSTs keep to HTTP/1.1.
func TestHTTP2_onlyGETs(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	protocols := map[string][]string{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		protocols[r.Method] = append(protocols[r.Method], r.Proto)
		_, _ = w.Write([]byte(record))
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	c := newClient(t, s.URL, func(config *Config) { config.RootCAs = pool })
	for range 3 {
		if _, err := c.CreateJob(t.Context(), "p", "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.GetJob(t.Context(), "p", "job_1"); err != nil {
			t.Fatal(err)
		}
	}
	if got := protocols["POST"]; len(got) != 3 || got[0] != "HTTP/1.1" || got[1] != "HTTP/1.1" || got[2] != "HTTP/1.1" {
		t.Errorf("POSTs came over %v, want HTTP/1.1 three times", got)
	}
	if got := protocols["GET"]; len(got) != 3 || got[0] != "HTTP/2.0" {
		t.Errorf("GETs came over %v: the server's offer of HTTP/2 was not there, so this test shows nothing", got)
	}
}
