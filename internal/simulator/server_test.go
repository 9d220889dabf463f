// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

func TestContract(t *testing.T) {
	const (
		jobs, job, prompt = "/v2/agent/proj/job", "/v2/agent/proj/job/{id}", `{"prompt":"x"}`
		right, noKey      = "Bearer " + canary, "invalid or missing API key"
		jsonType          = "application/json"
	)
	tests := map[string]struct {
		method, path, body string
		key, contentType   string
		want               int
		wantError          string
		wantKind           simulator.Kind
	}{
		"create":                    {"POST", jobs, prompt, right, jsonType, 201, "", simulator.KindCreate},
		"create with charset":       {"POST", jobs, prompt, right, jsonType + "; charset=utf-8", 201, "", simulator.KindCreate},
		"create with unknown field": {"POST", jobs, `{"prompt":"x","y":1}`, right, jsonType, 201, "", simulator.KindCreate},
		"message":                   {"POST", job + "/message", prompt, right, jsonType, 200, "", simulator.KindMessage},
		"get":                       {"GET", job, "", right, "", 200, "", simulator.KindGet},

		"no key":                 {"POST", jobs, prompt, "", jsonType, 401, noKey, simulator.KindCreate},
		"wrong key, unknown job": {"GET", jobs + "/job_none", "", "Bearer wrong", "", 401, noKey, simulator.KindGet},
		"key without scheme":     {"GET", job, "", canary, "", 401, noKey, simulator.KindGet},
		"scheme in lower case":   {"GET", job, "", "bearer " + canary, "", 401, noKey, simulator.KindGet},

		"empty prompt":          {"POST", jobs, `{"prompt":""}`, right, jsonType, 400, "prompt is required", simulator.KindCreate},
		"missing prompt":        {"POST", jobs, `{}`, right, jsonType, 400, "prompt is required", simulator.KindCreate},
		"prompt of other type":  {"POST", jobs, `{"prompt":1}`, right, jsonType, 400, "not the JSON expected", simulator.KindCreate},
		"trailing data":         {"POST", jobs, prompt + "{}", right, jsonType, 400, "not the JSON expected", simulator.KindCreate},
		"invalid UTF-8":         {"POST", jobs, "{\"prompt\":\"\xff\"}", right, jsonType, 400, "UTF-8", simulator.KindCreate},
		"no body":               {"POST", jobs, "", right, jsonType, 400, "not the JSON expected", simulator.KindCreate},
		"other content type":    {"POST", jobs, prompt, right, "text/plain", 400, "Content-Type", simulator.KindCreate},
		"message, empty prompt": {"POST", job + "/message", `{"prompt":""}`, right, jsonType, 400, "prompt is required", simulator.KindMessage},

		"get unknown job":        {"GET", jobs + "/job_none", "", right, "", 404, "job not found", simulator.KindGet},
		"get in another project": {"GET", "/v2/agent/other/job/{id}", "", right, "", 404, "job not found", simulator.KindGet},
		"message, other project": {"POST", "/v2/agent/other/job/{id}/message", prompt, right, jsonType, 404, "job not found", simulator.KindMessage},
		"escaped slash":          {"GET", jobs + "/a%2Fmessage", "", right, "", 404, "job not found", simulator.KindGet},
		"unknown path":           {"GET", "/v1/agent/proj/job/{id}", "", right, "", 404, "not found", simulator.KindOther},
		"trailing slash":         {"POST", jobs + "/", prompt, right, jsonType, 404, "not found", simulator.KindOther},
		"no list":                {"GET", jobs, "", right, "", 404, "not found", simulator.KindOther},
		"no delete":              {"DELETE", job, "", right, "", 404, "not found", simulator.KindOther},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := simulator.New(simulator.Options{Key: canary})
			id := s.Create("proj", "existing").ID
			r := newRequest(t, tt.method, "http://simulator"+strings.ReplaceAll(tt.path, "{id}", id), tt.body)
			r.Header.Set("Authorization", tt.key)
			r.Header.Set("Content-Type", tt.contentType)
			got := serve(s, r)
			text, isError := got.object(t)["error"].(string)
			if got.status != tt.want || got.header.Get("Content-Type") != jsonType || isError != (tt.wantError != "") || !strings.Contains(text, tt.wantError) {
				t.Errorf("got %+v, want %d and %q", got, tt.want, tt.wantError)
			}
			counts, requests := s.Counts(), s.Requests()
			of := map[simulator.Kind]int{
				simulator.KindCreate: counts.Create, simulator.KindMessage: counts.Message, simulator.KindGet: counts.Get, simulator.KindOther: counts.Other,
			}
			if len(requests) != 1 || requests[0].Status != tt.want || requests[0].Kind != tt.wantKind || of[tt.wantKind] != 1 {
				t.Errorf("counts %+v, recorded: %+v", counts, requests)
			}
			if strings.Contains(got.body, canary) {
				t.Errorf("the key is in the answer: %s", got.body)
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
	r := newRequest(t, "POST", "http://simulator/v2/agent/proj/job", "")
	r.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF))
	if got := serve(s, r).status; got != 400 || s.Counts() != (simulator.Counts{}) || len(s.Jobs()) != 0 || len(s.Requests()) != 1 {
		t.Errorf("status %d, counts %v, jobs %v, record %+v", got, s.Counts(), s.Jobs(), s.Requests())
	}
}

func TestKeyIsNotInTheRecord(t *testing.T) {
	s := simulator.New(simulator.Options{Key: canary})
	id := createID(t, s, "x")
	message(t, s, id, "y")
	data, err := json.Marshal(s.Requests())
	shown := fmt.Sprintf("%+v %s %v", s.Requests(), data, call(t, s, "GET", "/_simulator/requests", ""))
	if err != nil || strings.Count(shown, id) != 3*2 {
		t.Fatalf("%v, nothing was shown at all: %s", err, shown)
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
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			id := createID(t, s, "x")
			for range 5 {
				get(t, s, id)
			}
			message(t, s, id, "y")
			s.Jobs()
			s.Requests()
		})
	}
	all.Wait()
	want := simulator.Counts{Create: clients, Message: clients, Get: 5 * clients}
	if s.Counts() != want || len(s.Jobs()) != clients {
		t.Errorf("%d jobs, counts %+v, want %+v", len(s.Jobs()), s.Counts(), want)
	}
}
