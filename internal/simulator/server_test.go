// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
	if isJSON := w.Header().Get("Content-Type") == "application/json"; isJSON != (w.Body.Len() > 0) {
		t.Errorf("the headers of %q are %v", w.Body, w.Header())
	}
	got := reply{status: w.Code}
	_ = json.Unmarshal(w.Body.Bytes(), &got.fields)
	return got
}

const jobs = "/v2/agent/proj/job"

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

// What refuses a request, and what it counts as. The rest: the tests of internal/tools/contract.
func TestContract(t *testing.T) {
	const (
		job, prompt     = jobs + "/{id}", `{"prompt":"x"}`
		jsonType        = "application/json"
		create, message = simulator.KindCreate, simulator.KindMessage
	)
	tests := map[string]struct {
		method, path, body string
		contentType        string
		status             int
		err                string
		kind               simulator.Kind
	}{
		"create with charset":       {"POST", jobs, prompt, jsonType + "; charset=utf-8", 201, "", create},
		"create with unknown field": {"POST", jobs, `{"prompt":"x","y":1}`, jsonType, 400, `unknown field "y"`, create},

		"prompt of other type": {"POST", jobs, `{"prompt":1}`, jsonType, 400, "prompt is required", create},
		"trailing data":        {"POST", jobs, prompt + "{}", jsonType, 400, "not the JSON expected", create},
		"invalid UTF-8":        {"POST", jobs, "{\"prompt\":\"\xff\"}", jsonType, 400, "UTF-8", create},
		"other content type":   {"POST", jobs, prompt, "text/plain", 400, "Content-Type", create},

		"get in another project": {"GET", "/v2/agent/other/job/{id}", "", "", 404, "job not found", simulator.KindGet},
		"message, other project": {"POST", "/v2/agent/other/job/{id}/message", prompt, jsonType, 404, "job not found", message},
		"message, no messages":   {"POST", jobs + "/{closed}/message", prompt, jsonType, 409, "job is completed and accepts no messages", message},
		"message, failed":        {"POST", jobs + "/{failed}/message", prompt, jsonType, 409, "accepts no messages", message},
		"escaped slash":          {"GET", jobs + "/a%2Fmessage", "", "", 404, "job not found", simulator.KindGet},

		"unknown directive": {"POST", job + "/message", `{"prompt":"[simulate: 1s, fail]"}`, jsonType, 400, `does not know "fail"`, message},
		"open directives":   {"POST", jobs, `{"prompt":"[simulate: 30s"}`, jsonType, 400, "takes one [simulate: …]", create},
		"directives twice":  {"POST", jobs, `{"prompt":"[simulate: 1s] [simulate: 9s]"}`, jsonType, 400, "closed by ]", create},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(simulator.Script{})
			id, failed := s.Create("proj", "existing").ID, s.Create("proj", "[simulate: failed]").ID
			closed := s.Create("proj", "[simulate: 0s, no-messages]").ID
			r := newRequest(t, tt.method, strings.NewReplacer("{id}", id, "{failed}", failed, "{closed}", closed).Replace(tt.path), tt.body)
			r.Header.Set("Content-Type", tt.contentType)
			before := s.Jobs()
			got := serve(t, s, r)
			text, isError := got.fields["error"].(string)
			if got.status != tt.status || isError != (tt.err != "") || !strings.Contains(text, tt.err) {
				t.Errorf("got %+v, want %d and %q", got, tt.status, tt.err)
			}
			if diff := cmp.Diff(before, s.Jobs()); isError && diff != "" {
				t.Errorf("it took effect (-before +after):\n%s", diff)
			}
			counts := map[simulator.Kind]simulator.Counts{create: {Create: 1}, message: {Message: 1}, simulator.KindGet: {Get: 1}, simulator.KindOther: {Other: 1}}
			record := s.Requests()
			if s.Counts() != counts[tt.kind] || len(record) != 1 || record[0].Kind != tt.kind || !record[0].Authorized {
				t.Errorf("counts %+v, recorded: %+v", s.Counts(), record)
			}
		})
	}
}

// A body that breaks off is on record but not counted: the counts tell how
// often the service could have acted.
func TestIncompleteBody(t *testing.T) {
	s := newServer(simulator.Script{})
	r := newRequest(t, "POST", jobs, "")
	r.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF))
	if got := serve(t, s, r).status; got != 400 || s.Counts() != (simulator.Counts{}) || len(s.Jobs()) != 0 || len(s.Requests()) != 1 {
		t.Errorf("status %d, counts %v, jobs %v, record %+v", got, s.Counts(), s.Jobs(), s.Requests())
	}
}

// Which requests a queue of faults is used for, and which of them take effect.
func TestFaultQueue(t *testing.T) {
	s := newServer(simulator.Script{})
	id := s.Create("proj", "1").ID
	s.Inject(
		simulator.Fault{Kind: simulator.KindMessage, Skip: 1, Status: 500},
		simulator.Fault{Kind: simulator.KindMessage, Status: 501, AfterEffect: true},
		simulator.Fault{Skip: 1, Status: 502, Times: 2},
		simulator.Fault{Skip: 1, Status: 503},
		simulator.Fault{Kind: simulator.KindGet, Status: 504, Times: -1, Body: `{"error":"lost"}`},
	)
	var got []int
	for range 7 {
		got = append(got, get(t, s, id).status)
	}
	for _, prompt := range []string{"2", "refused", "3", "4"} {
		got = append(got, message(t, s, id, prompt).status)
	}
	if diff := cmp.Diff([]int{200, 502, 502, 200, 503, 504, 504, 200, 500, 501, 200}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	if text := get(t, s, id).fields["error"]; text != "lost" {
		t.Errorf("the fault's body: %v", text)
	}
	if diff := cmp.Diff([]string{"1", "2", "3", "4"}, s.Jobs()[0].Prompts); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
}

// What directives make of a job that would take a minute: when it ends, and how.
func TestDirectives(t *testing.T) {
	type end struct {
		after  time.Duration
		status string
		link   bool
	}
	for prompt, want := range map[string]end{
		"Add a quickstart":               {time.Minute, "completed", true},
		"[simulate: 1m30s, failed]":      {90 * time.Second, "failed", false},
		"[simulate:archived,0s]":         {0, "archived", false},
		"[simulate: active ]":            {time.Time{}.Sub(start), "active", false}, // never
		"[simulate: no-pull-request]":    {time.Minute, "completed", false},
		"[simulate: 20s, stale=5s] more": {20 * time.Second, "completed", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(simulator.Script{Duration: time.Minute})
			s.Create("proj", prompt)
			time.Sleep(time.Hour)
			job := s.Jobs()[0]
			record := get(t, s, job.ID).fields
			got := end{job.EndedAt.Sub(start), job.Status, record["prLink"] != nil}
			if isArchived := record["archivedAt"] != nil; got != want || isArchived != (want.status == "archived") {
				t.Errorf("%s: %+v, want %+v; archivedAt %v", prompt, got, want, record["archivedAt"])
			}
		})
	}
}
