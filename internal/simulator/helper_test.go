// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// canary is the key of every test; it must not turn up anywhere.
const canary = "canary_5f3a9c71"

// start is when the clock of a bubble begins.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// scripted returns a script function that gives one script for each turn.
func scripted(turns ...simulator.Script) func(string, int) simulator.Script {
	return func(_ string, turn int) simulator.Script { return turns[turn] }
}

// reply is an answer as a client sees it.
type reply struct {
	status int
	header http.Header
	body   string
}

// object decodes the answer's JSON object.
func (r reply) object(t *testing.T) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(r.body), &fields); err != nil {
		t.Fatalf("answer %d is no JSON object: %v\n%s", r.status, err, r.body)
	}
	return fields
}

func newRequest(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+canary)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// serve calls the handler directly, as a fake transport does.
func serve(s http.Handler, r *http.Request) reply {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return reply{w.Code, w.Header(), w.Body.String()}
}

func call(t *testing.T, s http.Handler, method, path, body string) reply {
	t.Helper()
	return serve(s, newRequest(t, method, "http://simulator"+path, body))
}

func create(t *testing.T, s http.Handler, prompt string) reply {
	t.Helper()
	return call(t, s, "POST", "/v2/agent/proj/job", `{"prompt":"`+prompt+`"}`)
}

// createID creates a job and returns its id.
func createID(t *testing.T, s http.Handler, prompt string) string {
	t.Helper()
	id, _ := create(t, s, prompt).object(t)["id"].(string)
	return id
}

func message(t *testing.T, s http.Handler, id, prompt string) reply {
	t.Helper()
	return call(t, s, "POST", "/v2/agent/proj/job/"+id+"/message", `{"prompt":"`+prompt+`"}`)
}

func get(t *testing.T, s http.Handler, id string) reply {
	t.Helper()
	return call(t, s, "GET", "/v2/agent/proj/job/"+id, "")
}

// status returns the status that a GET shows.
func status(t *testing.T, s http.Handler, id string) any {
	t.Helper()
	return get(t, s, id).object(t)["status"]
}
