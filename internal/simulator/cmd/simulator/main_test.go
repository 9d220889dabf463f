// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const canary = "canary_5f3a9c71"

// call sends a request with the key and returns the status, 0 if there is none, and the body as text.
func call(t *testing.T, method, url, contentType, body string) (status int, text string) {
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	r.Header.Set("Authorization", "Bearer "+canary)
	r.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(data)
}

// The command's environment, what its service refuses, the control paths, its log, and its end. The rest of the service: the tests of
// internal/tools/contract.
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

	const (
		jobs, job, message, x = "/v2/agent/proj_demo/job", "/v2/agent/proj_demo/job/{id}", "/v2/agent/proj_demo/job/{id}/message", `{"prompt":"x"}`
		form                  = "application/json"
	)
	id := "" // of the last job
	for _, step := range []struct {
		method, path, contentType, body string
		status                          int
		text                            string
	}{
		{"POST", jobs, form + "; charset=utf-8", x, 201, `"status":"completed"`},
		{"POST", message, form, `{"prompt":"x [simulate: 1h, stale=1h]"}`, 200, `"status":"completed"`},
		{"POST", jobs, form, `{"prompt":"x","y":1}`, 400, `unknown field \"y\"`},
		{"POST", jobs, form, x, 201, ""},
		{"POST", "/_simulator/faults", form, `{"kind":"message","status":500,"afterEffect":true}`, 204, ""},
		{"POST", message, form, `{"prompt":"[simulate: active]"}`, 500, ""},
		{"GET", job, form, "", 200, `"status":"active"`},
		{"GET", "/" + canary, form, "", 404, "not found"},
		{"POST", "/_simulator/faults", form, `{"drop":true}`, 204, ""},
		{"POST", "/dropped", form, "{}", 0, "EOF"}, // net/http itself would send a dropped GET again
		{"GET", "/_simulator/requests", form, "", 200, `"Prompt":"x [simulate: 1h, stale=1h]"`},
	} {
		status, text := call(t, step.method, url+strings.Replace(step.path, "{id}", id, 1), step.contentType, step.body)
		if status != step.status || !strings.Contains(text, step.text) || step.path == "/_simulator/requests" && strings.Contains(text, "Bearer") {
			t.Errorf("%s %s %s: %d %s, want %d %s", step.method, step.path, step.body, status, text, step.status, step.text)
		}
		if _, after, found := strings.Cut(text, `"id":"`); found && status == http.StatusCreated {
			id, _, _ = strings.Cut(after, `"`)
		}
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
