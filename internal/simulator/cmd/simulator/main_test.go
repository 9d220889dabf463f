// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const canary = "canary_5f3a9c71"

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// command is a running simulator.
type command struct {
	env    map[string]string
	stderr *buffer
	stop   func() error
}

func startCommand(t *testing.T, args ...string) command {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	c := command{env: map[string]string{}, stderr: &buffer{}}
	stdout, printed := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"-listen", "127.0.0.1:0"}, args...), printed, c.stderr)
		printed.CloseWithError(err)
		done <- err
	}()
	c.stop = func() error { cancel(); return <-done }
	text := make([]byte, 4096)
	n, err := stdout.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text[:n])) {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if !ok || !strings.HasPrefix(line, "export ") {
			t.Errorf("line %q", line)
		}
		c.env[name] = value
	}
	return c
}

func (c command) do(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.env["AGENT_BASE_URL"]+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.env["AGENT_ADMIN_KEY"])
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return response.StatusCode, string(data) + " " + err.Error()
	}
	if response.Header.Get("Retry-After") != "" {
		data = append(data, "Retry-After"...)
	}
	return response.StatusCode, string(data)
}

func TestRun(t *testing.T) {
	c := startCommand(t, "-key", canary, "-project", "proj_x", "-limit", "2", "-limit-per", "30m", "-duration", "0s")
	if c.env["AGENT_ADMIN_KEY"] != canary || c.env["AGENT_PROJECT_ID"] != "proj_x" || len(c.env) != 3 {
		t.Errorf("environment %v", c.env)
	}
	const jobs = "/v2/agent/proj_x/job"
	steps := []struct {
		method, path, body string
		wantStatus         int
		wantBody           string
	}{
		{"POST", jobs, `{"prompt":"x"}`, 201, `"status":"completed"`},
		{"POST", jobs, `{"prompt":"x [simulate: 1h]"}`, 201, `"status":"active"`},
		{"POST", jobs, `{"prompt":"x [simulate: slow]"}`, 400, "slow"},
		{"POST", jobs, `{"prompt":"x"}`, 429, `{"error":"rate limit exceeded"}Retry-After`},
		{"GET", "/" + canary, "", 404, "not found"},
		{"POST", "/_simulator/faults", `{"drop":true}`, 204, ""},
		// A dropped GET would be sent again by net/http itself.
		{"POST", "/dropped", "{}", 0, "EOF"},
		{"POST", "/_simulator/faults", `{"truncate":8}`, 204, ""},
		{"POST", "/truncated", "{}", 404, `{"error" unexpected EOF`},
		{"GET", "/_simulator/counts", "", 200, `{"create":4,"message":0,"get":0,"other":3}`},
	}
	for _, step := range steps {
		status, body := c.do(t, step.method, step.path, step.body)
		if status != step.wantStatus || !strings.Contains(body, step.wantBody) {
			t.Errorf("%s %s: %d %s, want %d %s", step.method, step.path, status, body, step.wantStatus, step.wantBody)
		}
	}
	if err := c.stop(); err != nil {
		t.Errorf("end: %v", err)
	}
	log := c.stderr.String()
	for _, want := range []string{"[simulate: 30s, failed]", "POST " + jobs + " 201\n", "GET /*** 404\n", "POST /dropped no answer\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q", want)
		}
	}
	if strings.Contains(log, canary) {
		t.Errorf("the key is in the log:\n%s", log)
	}
}

// The command ends at once even though a request is still delayed and a client
// has opened a connection without using it.
func TestRunEndsDelayedRequests(t *testing.T) {
	c := startCommand(t)
	if key := c.env["AGENT_ADMIN_KEY"]; len(key) < 20 {
		t.Errorf("random key %q", key)
	}
	unused, err := net.Dial("tcp", strings.TrimPrefix(c.env["AGENT_BASE_URL"], "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unused.Close() }()
	if status, body := c.do(t, "POST", "/_simulator/faults", `{"kind":"get","delay":"1h"}`); status != 204 {
		t.Fatal(status, body)
	}
	answered := make(chan int, 1)
	go func() {
		status, _ := c.do(t, "GET", "/v2/agent/p/job/x", "")
		answered <- status
	}()
	for counts := ""; !strings.Contains(counts, `"get":1`); {
		_, counts = c.do(t, "GET", "/_simulator/counts", "")
		time.Sleep(time.Millisecond)
	}
	if err := c.stop(); err != nil {
		t.Errorf("end: %v", err)
	}
	if status := <-answered; status != 0 {
		t.Errorf("the delayed request was answered %d", status)
	}
}

func TestAddressInUse(t *testing.T) {
	taken := startCommand(t)
	address := strings.TrimPrefix(taken.env["AGENT_BASE_URL"], "http://")
	err := run(t.Context(), []string{"-listen", address}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "-listen 127.0.0.1:0") {
		t.Errorf("error %v, want one that names %s and the way out", err, address)
	}
	if err := taken.stop(); err != nil {
		t.Errorf("end: %v", err)
	}
}

func TestUsage(t *testing.T) {
	tests := map[string]struct {
		args []string
		want error
	}{
		"all interfaces":  {[]string{"-listen", ":0"}, errUsage},
		"unspecified":     {[]string{"-listen", "0.0.0.0:0"}, errUsage},
		"remote":          {[]string{"-listen", "192.0.2.1:0"}, errUsage},
		"remote v6":       {[]string{"-listen", "[2001:db8::1]:0"}, errUsage},
		"no port":         {[]string{"-listen", "127.0.0.1"}, errUsage},
		"unknown flag":    {[]string{"-nope"}, errUsage},
		"argument":        {[]string{"x"}, errUsage},
		"key":             {[]string{"-key", "a b"}, errUsage},
		"project":         {[]string{"-project", "a/b"}, errUsage},
		"limit":           {[]string{"-limit", "-1"}, errUsage},
		"limit-per":       {[]string{"-limit-per", "0s"}, errUsage},
		"duration":        {[]string{"-duration", "-1s"}, errUsage},
		"help":            {[]string{"-help"}, flag.ErrHelp},
		"allowed, no key": {[]string{"-listen", "0.0.0.0:0", "-allow-remote"}, nil},
		"loopback name":   {[]string{"-listen", "localhost:0"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			var stdout bytes.Buffer
			err := run(ctx, tt.args, &stdout, io.Discard)
			if !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if printed := strings.Contains(stdout.String(), "AGENT_BASE_URL=http://127.0.0.1:"); printed != (err == nil) {
				t.Errorf("printed %q", stdout.String())
			}
		})
	}
}
