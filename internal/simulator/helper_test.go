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

// newServer returns a service whose turns go as the scripts say, the last one again and again.
func newServer(scripts ...simulator.Script) *simulator.Server {
	return simulator.New(simulator.Options{Key: canary, Script: func(_ string, turn int) simulator.Script {
		return scripts[min(turn, len(scripts)-1)]
	}})
}

// reply is an answer as a client sees it.
type reply struct {
	status int
	header http.Header
	fields map[string]any // of the JSON object, if it is one
}

func newRequest(t *testing.T, method, path, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://simulator"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+canary)
	r.Header.Set("Content-Type", "application/json")
	return r
}

// serve calls the handler directly, as a fake transport does.
func serve(t *testing.T, s http.Handler, r *http.Request) reply {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if strings.Contains(w.Body.String(), canary) {
		t.Errorf("the key is in the answer: %s", w.Body)
	}
	got := reply{status: w.Code, header: w.Header()}
	_ = json.Unmarshal(w.Body.Bytes(), &got.fields)
	return got
}

const jobs = "/v2/agent/proj/job"

func create(t *testing.T, s http.Handler, prompt string) reply {
	t.Helper()
	return serve(t, s, newRequest(t, "POST", jobs, `{"prompt":"`+prompt+`"}`))
}

func message(t *testing.T, s http.Handler, id, prompt string) reply {
	t.Helper()
	return serve(t, s, newRequest(t, "POST", jobs+"/"+id+"/message", `{"prompt":"`+prompt+`"}`))
}

func get(t *testing.T, s http.Handler, id string) reply {
	t.Helper()
	return serve(t, s, newRequest(t, "GET", jobs+"/"+id, ""))
}

// start is when the clock of a bubble begins.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
