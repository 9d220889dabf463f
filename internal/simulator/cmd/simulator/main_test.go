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
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const canary = "canary_5f3a9c71"

// command is a running simulator.
type command struct {
	env  map[string]string
	log  string // its file
	stop func() error
}

func startCommand(t *testing.T, args ...string) command {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	c := command{env: map[string]string{}, log: filepath.Join(t.TempDir(), "log")}
	stderr, err := os.Create(c.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stderr.Close() })
	stdout, printed := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"-listen", "127.0.0.1:0"}, args...), printed, stderr)
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
	c := startCommand(t, "-key", canary, "-duration", "0s")
	if c.env["AGENT_ADMIN_KEY"] != canary || len(c.env) != 3 {
		t.Errorf("environment %v", c.env)
	}
	jobs := "/v2/agent/" + c.env["AGENT_PROJECT_ID"] + "/job"
	steps := []struct {
		method, path, body string
		wantStatus         int
		wantBody           string
	}{
		{"POST", jobs, `{"prompt":"x"}`, 201, `"status":"completed"`},
		{"POST", jobs, `{"prompt":"x [simulate: 1h]"}`, 201, `"status":"active"`},
		{"POST", jobs, `{"prompt":"x [simulate: slow]"}`, 400, "slow"},
		{"POST", "/_simulator/faults", `{"kind":"create","status":429,"retryAfter":"5"}`, 204, ""},
		{"POST", jobs, `{"prompt":"x"}`, 429, "Retry-After"},
		{"POST", "/_simulator/faults", `{"stauts":429}`, 400, "stauts"},
		{"POST", "/_simulator/faults", `{"status":50}`, 400, "between 200 and 599"},
		{"POST", "/_simulator/faults", `{"delay":"5"}`, 400, "missing unit"},
		{"GET", "/_simulator/jobs", "", 404, "not found"},
		{"GET", "/" + canary, "", 404, "not found"},
		{"POST", "/_simulator/faults", `{"drop":true}`, 204, ""},
		// A dropped GET would be sent again by net/http itself.
		{"POST", "/dropped", "{}", 0, "EOF"},
		{"GET", "/_simulator/requests", "", 200, `"Prompt":"x [simulate: 1h]"`},
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
	text, err := os.ReadFile(c.log)
	if err != nil {
		t.Fatal(err)
	}
	log := string(text)
	for _, want := range []string{"[simulate: 30s, failed]", "POST " + jobs + " 201 \"Go-http", "GET /*** 404 ", "POST /dropped no response "} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q", want)
		}
	}
	if strings.Contains(log, canary) {
		t.Errorf("the key is in the log:\n%s", log)
	}
}

// The help shows no key, which would be another than the one of the next start.
func TestRunHelp(t *testing.T) {
	var shown bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, io.Discard, &shown); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error %v", err)
	}
	if text := shown.String(); !strings.Contains(text, "default a random one") || strings.Contains(text, "sim_") {
		t.Errorf("help:\n%s", text)
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
	for record := ""; !strings.Contains(record, `"Kind":"get"`); {
		_, record = c.do(t, "GET", "/_simulator/requests", "")
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
	for _, args := range []string{"-listen :0", "-listen 0.0.0.0:0", "-listen [2001:db8::1]:0", "-listen 127.0.0.1", "-nope"} {
		var stdout bytes.Buffer
		if err := run(t.Context(), strings.Fields(args), &stdout, io.Discard); err == nil || stdout.Len() > 0 {
			t.Errorf("%s: %v, %s", args, err, &stdout)
		}
	}
}
