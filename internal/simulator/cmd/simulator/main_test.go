// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const canary = "canary_5f3a9c71"

// call sends a request with the key and returns the status, 0 if there is none, and the rest as text.
func call(t *testing.T, method, url, body string) (status int, text string) {
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	r.Header.Set("Authorization", "Bearer "+canary)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(data) + " Retry-After: " + response.Header.Get("Retry-After")
}

// The command's environment, the control paths, its log, and its end while a request is
// delayed and a client has opened a connection without using it.
func TestRun(t *testing.T) {
	stderr, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stderr.Close() }()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stdout, printed := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"-listen", "127.0.0.1:0", "-key", canary, "-duration", "0s"}, printed, stderr)
		_ = printed.Close()
	}()
	var address string
	const env = "export AGENT_BASE_URL=http://%s\nexport AGENT_ADMIN_KEY=" + canary + "\nexport AGENT_PROJECT_ID=proj_demo\n"
	if _, err := fmt.Fscanf(stdout, env, &address); err != nil {
		t.Fatal("what it has printed is no environment:", err)
	}
	url := "http://" + address
	if err := run(t.Context(), []string{"-listen", address}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "-listen 127.0.0.1:0") {
		t.Errorf("on the same address: error %v, want one that names the way out", err)
	}

	const jobs = "/v2/agent/proj_demo/job"
	steps := []struct {
		method, path, body string
		status             int
		text               string
	}{
		{"POST", jobs, `{"prompt":"x"}`, 201, `"status":"completed"`},
		{"POST", jobs, `{"prompt":"x [simulate: 1h]"}`, 201, `"status":"active"`},
		{"POST", jobs, `{"prompt":"x [simulate: slow]"}`, 400, "slow"},
		{"POST", "/_simulator/faults", `{"kind":"create","status":429,"retryAfter":"5"}`, 204, ""},
		{"POST", jobs, `{"prompt":"x"}`, 429, "Retry-After: 5"},
		{"POST", "/_simulator/faults", `{"stauts":429}`, 400, "stauts"},
		{"POST", "/_simulator/faults", `{"status":50}`, 400, "between 200 and 599"},
		{"POST", "/_simulator/faults", `{"delay":"5"}`, 400, "missing unit"},
		{"GET", "/_simulator/jobs", "", 404, "not found"},
		{"GET", "/" + canary, "", 404, "not found"},
		{"POST", "/_simulator/faults", `{"drop":true}`, 204, ""},
		{"POST", "/dropped", "{}", 0, "EOF"}, // net/http itself would send a dropped GET again
		{"GET", "/_simulator/requests", "", 200, `"Prompt":"x [simulate: 1h]"`},
		{"POST", "/_simulator/faults", `{"kind":"get","delay":"1h"}`, 204, ""},
	}
	for _, step := range steps {
		status, text := call(t, step.method, url+step.path, step.body)
		if status != step.status || !strings.Contains(text, step.text) || step.path == "/_simulator/requests" && strings.Contains(text, "Bearer") {
			t.Errorf("%s %s: %d %s, want %d %s", step.method, step.path, status, text, step.status, step.text)
		}
	}

	unused, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unused.Close() }()
	go func() {
		for record := ""; ctx.Err() == nil && !strings.Contains(record, `"Kind":"get"`); {
			_, record = call(t, "GET", url+"/_simulator/requests", "")
		}
		stop()
	}()
	if status, _ := call(t, "GET", url+jobs+"/x", ""); status != 0 {
		t.Errorf("the delayed request was answered %d", status)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("the end: %v", err)
	}
	log, err := os.ReadFile(stderr.Name())
	if err != nil || bytes.Contains(log, []byte(canary)) {
		t.Errorf("log: %v, or it has the key:\n%s", err, log)
	}
	for _, want := range []string{"[simulate: 30s, failed]", "POST " + jobs + " 201 \"Go-http", "GET /*** 404 ", "POST /dropped no response "} {
		if !bytes.Contains(log, []byte(want)) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
}

func TestUsage(t *testing.T) {
	var help bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, io.Discard, &help); !errors.Is(err, flag.ErrHelp) || strings.Contains(help.String(), "sim_") {
		t.Errorf("%v, or it shows a key that the next start does not accept:\n%s", err, &help)
	}
	for _, args := range []string{"-listen :0", "-listen 0.0.0.0:0", "-listen [2001:db8::1]:0", "-listen 127.0.0.1", "-nope"} {
		var stdout bytes.Buffer
		if err := run(t.Context(), strings.Fields(args), &stdout, io.Discard); err == nil || stdout.Len() > 0 {
			t.Errorf("%s: %v, %s", args, err, &stdout)
		}
	}
}
