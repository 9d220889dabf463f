// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

func TestContract(t *testing.T) {
	const none = "-" // no such header
	tests := map[string]struct {
		method, path, body string
		authorization      string // "" is the right one
		contentType        string // "" is application/json
		want               int
		wantError          string
		wantCounts         simulator.Counts
	}{
		"create":              {method: "POST", path: "/v2/agent/proj/job", body: `{"prompt":"x"}`, want: 201, wantCounts: simulator.Counts{Create: 1}},
		"create with charset": {method: "POST", path: "/v2/agent/proj/job", body: `{"prompt":"x"}`, contentType: "application/json; charset=utf-8", want: 201, wantCounts: simulator.Counts{Create: 1}},
		"create with unknown field": {method: "POST", path: "/v2/agent/proj/job", body: `{"prompt":"x","y":1}`, want: 201,
			wantCounts: simulator.Counts{Create: 1}},
		"message":                {method: "POST", path: "/v2/agent/proj/job/{id}/message", body: `{"prompt":"x"}`, want: 200, wantCounts: simulator.Counts{Message: 1}},
		"get":                    {method: "GET", path: "/v2/agent/proj/job/{id}", want: 200, wantCounts: simulator.Counts{Get: 1}},
		"empty key":              {method: "GET", path: "/v2/agent/proj/job/{id}", authorization: "Bearer ", want: 401, wantError: "invalid or missing API key", wantCounts: simulator.Counts{Get: 1}},
		"no key":                 {method: "POST", path: "/v2/agent/proj/job", body: `{"prompt":"x"}`, authorization: none, want: 401, wantError: "invalid or missing API key", wantCounts: simulator.Counts{Create: 1}},
		"wrong key":              {method: "POST", path: "/v2/agent/proj/job", body: `{"prompt":"x"}`, authorization: "Bearer wrong", want: 401, wantError: "invalid or missing API key", wantCounts: simulator.Counts{Create: 1}},
		"key without scheme":     {method: "POST", path: "/v2/agent/proj/job", body: `{"prompt":"x"}`, authorization: canary, want: 401, wantError: "invalid or missing API key", wantCounts: simulator.Counts{Create: 1}},
		"wrong key, unknown job": {method: "GET", path: "/v2/agent/proj/job/job_none", authorization: "Bearer wrong", want: 401, wantError: "invalid or missing API key", wantCounts: simulator.Counts{Get: 1}},

		"empty prompt":          {method: "POST", path: "/v2/agent/proj/job", body: `{"prompt":""}`, want: 400, wantError: "prompt is required", wantCounts: simulator.Counts{Create: 1}},
		"missing prompt":        {method: "POST", path: "/v2/agent/proj/job", body: `{}`, want: 400, wantError: "prompt is required", wantCounts: simulator.Counts{Create: 1}},
		"null prompt":           {method: "POST", path: "/v2/agent/proj/job", body: `{"prompt":null}`, want: 400, wantError: "prompt is required", wantCounts: simulator.Counts{Create: 1}},
		"prompt of other type":  {method: "POST", path: "/v2/agent/proj/job", body: `{"prompt":1}`, want: 400, wantError: "not the JSON expected", wantCounts: simulator.Counts{Create: 1}},
		"no JSON":               {method: "POST", path: "/v2/agent/proj/job", body: `prompt`, want: 400, wantError: "not the JSON expected", wantCounts: simulator.Counts{Create: 1}},
		"trailing data":         {method: "POST", path: "/v2/agent/proj/job", body: `{"prompt":"x"}{}`, want: 400, wantError: "not the JSON expected", wantCounts: simulator.Counts{Create: 1}},
		"invalid UTF-8":         {method: "POST", path: "/v2/agent/proj/job", body: "{\"prompt\":\"\xff\"}", want: 400, wantError: "UTF-8", wantCounts: simulator.Counts{Create: 1}},
		"no body":               {method: "POST", path: "/v2/agent/proj/job", contentType: "application/json", want: 400, wantError: "not the JSON expected", wantCounts: simulator.Counts{Create: 1}},
		"other content type":    {method: "POST", path: "/v2/agent/proj/job", body: `{"prompt":"x"}`, contentType: "text/plain", want: 400, wantError: "Content-Type", wantCounts: simulator.Counts{Create: 1}},
		"message, empty prompt": {method: "POST", path: "/v2/agent/proj/job/{id}/message", body: `{"prompt":""}`, want: 400, wantError: "prompt is required", wantCounts: simulator.Counts{Message: 1}},

		"get unknown job":        {method: "GET", path: "/v2/agent/proj/job/job_none", want: 404, wantError: "job not found", wantCounts: simulator.Counts{Get: 1}},
		"get in another project": {method: "GET", path: "/v2/agent/other/job/{id}", want: 404, wantError: "job not found", wantCounts: simulator.Counts{Get: 1}},
		"message to unknown job": {method: "POST", path: "/v2/agent/proj/job/job_none/message", body: `{"prompt":"x"}`, want: 404, wantError: "job not found", wantCounts: simulator.Counts{Message: 1}},
		"message, other project": {method: "POST", path: "/v2/agent/other/job/{id}/message", body: `{"prompt":"x"}`, want: 404, wantError: "job not found", wantCounts: simulator.Counts{Message: 1}},
		"escaped slash":          {method: "GET", path: "/v2/agent/proj/job/a%2Fmessage", want: 404, wantError: "job not found", wantCounts: simulator.Counts{Get: 1}},
		"unknown path":           {method: "GET", path: "/v1/agent/proj/job/{id}", want: 404, wantError: "not found", wantCounts: simulator.Counts{Other: 1}},
		"trailing slash":         {method: "POST", path: "/v2/agent/proj/job/", body: `{"prompt":"x"}`, want: 404, wantError: "not found", wantCounts: simulator.Counts{Other: 1}},
		"double slash":           {method: "POST", path: "//v2/agent/proj/job", body: `{"prompt":"x"}`, want: 404, wantError: "not found", wantCounts: simulator.Counts{Other: 1}},
		"no list":                {method: "GET", path: "/v2/agent/proj/job", want: 404, wantError: "not found", wantCounts: simulator.Counts{Other: 1}},
		"no list of messages":    {method: "GET", path: "/v2/agent/proj/job/{id}/message", want: 404, wantError: "not found", wantCounts: simulator.Counts{Other: 1}},
		"no delete":              {method: "DELETE", path: "/v2/agent/proj/job/{id}", want: 404, wantError: "not found", wantCounts: simulator.Counts{Other: 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := simulator.New(simulator.Options{Key: canary})
			job := s.Create("proj", "existing")
			r := newRequest(t, tt.method, "http://simulator"+strings.ReplaceAll(tt.path, "{id}", job.ID), tt.body)
			switch tt.authorization {
			case "":
			case none:
				r.Header.Del("Authorization")
			default:
				r.Header.Set("Authorization", tt.authorization)
			}
			if tt.contentType != "" {
				r.Header.Set("Content-Type", tt.contentType)
			}
			got := serve(s, r)
			if got.status != tt.want {
				t.Errorf("status %d, want %d: %s", got.status, tt.want, got.body)
			}
			if ct := got.header.Get("Content-Type"); ct != "application/json" {
				t.Errorf("Content-Type %q", ct)
			}
			text, isError := got.object(t)["error"].(string)
			if isError != (tt.wantError != "") || !strings.Contains(text, tt.wantError) {
				t.Errorf("error %q, want %q", text, tt.wantError)
			}
			if diff := cmp.Diff(tt.wantCounts, s.Counts()); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			requests := s.Requests()
			if len(requests) != 1 || requests[0].Status != tt.want {
				t.Errorf("recorded: %+v", requests)
			}
		})
	}
}

func TestConflict(t *testing.T) {
	for state, want := range map[string]int{"active": 200, "completed": 200, "failed": 409, "archived": 409} {
		t.Run(state, func(t *testing.T) {
			s := simulator.New(simulator.Options{Key: canary})
			id := createID(t, s, "x")
			s.SetStatus(id, state)
			got := message(t, s, id, "more")
			if got.status != want {
				t.Errorf("status %d, want %d: %s", got.status, want, got.body)
			}
			job, _ := s.Job(id)
			if taken := len(job.Prompts) == 2; taken != (want == 200) {
				t.Errorf("prompts %q", job.Prompts)
			}
		})
	}
}

func TestRequestRecord(t *testing.T) { synctest.Test(t, requestRecord) }

func requestRecord(t *testing.T) {
	s := simulator.New(simulator.Options{Key: canary})
	body := `{"prompt":"a \"b\" ☃"}`
	r := newRequest(t, "POST", "http://simulator/v2/agent/my%20proj/job?debug=1", body)
	r.Header.Set("User-Agent", "test")
	serve(s, r)
	if r.Header.Get("Authorization") == "" {
		t.Error("the caller's own header was changed")
	}
	want := []simulator.Request{{
		Time: start, Kind: simulator.KindCreate, Method: "POST", Path: "/v2/agent/my%20proj/job?debug=1",
		Project: "my proj", Prompt: `a "b" ☃`, Authorized: true, Status: 201,
		Header: http.Header{"Content-Type": {"application/json"}, "User-Agent": {"test"}},
	}}
	if diff := cmp.Diff(want, s.Requests()); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if s.Counts() != (simulator.Counts{Create: 1}) {
		t.Errorf("counts %+v", s.Counts())
	}
}

// A body that breaks off is on record but not counted: the counts tell how
// often the service could have acted.
func TestIncompleteBody(t *testing.T) {
	s := simulator.New(simulator.Options{Key: canary})
	r := newRequest(t, "POST", "http://simulator/v2/agent/proj/job", `{"prompt":"x"}`)
	r.Body = brokenBody{}
	if got := serve(s, r); got.status != 400 {
		t.Errorf("status %d", got.status)
	}
	if s.Counts() != (simulator.Counts{}) || len(s.Jobs()) != 0 {
		t.Errorf("counts %v, jobs %v", s.Counts(), s.Jobs())
	}
	if got := s.Requests(); len(got) != 1 {
		t.Errorf("record %+v", got)
	}
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, http.ErrBodyReadAfterClose }
func (brokenBody) Close() error             { return nil }

func TestKeyIsNeverShown(t *testing.T) {
	s := simulator.New(simulator.Options{Key: canary})
	id := createID(t, s, "x")
	message(t, s, id, "y")
	get(t, s, id)
	get(t, s, "none")
	for _, authorization := range []string{"Bearer " + canary + "x", "bearer " + canary, canary} {
		r := newRequest(t, "GET", "http://simulator/v2/agent/proj/job/"+id, "")
		r.Header.Set("Authorization", authorization)
		if got := serve(s, r); got.status != 401 || strings.Contains(fmt.Sprint(got), canary) {
			t.Errorf("answer %+v", got)
		}
	}
	data, err := json.Marshal(s.Requests())
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%+v %s", s.Requests(), data)
	shown += fmt.Sprint(call(t, s, "GET", "/_simulator/requests", ""))
	if !strings.Contains(shown, id) {
		t.Fatal("nothing was shown at all")
	}
	if strings.Contains(shown, canary) {
		t.Errorf("the key is in the record:\n%s", shown)
	}
}

// Many clients at once, for the race detector.
func TestConcurrentUse(t *testing.T) {
	s := simulator.New(simulator.Options{Key: canary})
	s.Inject(simulator.Fault{Kind: simulator.KindGet, Times: 50, Status: 503})
	const clients = 100
	done := make(chan string)
	for range clients {
		go func() {
			id := createID(t, s, "x")
			for range 5 {
				get(t, s, id)
			}
			message(t, s, id, "y")
			s.Jobs()
			s.Requests()
			done <- id
		}()
	}
	var ids []string
	for range clients {
		ids = append(ids, <-done)
	}
	var listed []string
	for _, j := range s.Jobs() {
		listed = append(listed, j.ID)
	}
	if diff := cmp.Diff(ids, listed, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("jobs (-answered +listed):\n%s", diff)
	}
	if want := (simulator.Counts{Create: clients, Message: clients, Get: 5 * clients}); s.Counts() != want {
		t.Errorf("counts %+v, want %+v", s.Counts(), want)
	}
}
