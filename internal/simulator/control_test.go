// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

func TestControlAnswers(t *testing.T) {
	tests := map[string]struct {
		method, path, body string
		want               int
	}{
		"requests":          {"GET", "requests", "", 200},
		"counts":            {"GET", "counts", "", 200},
		"jobs":              {"GET", "jobs", "", 200},
		"fault":             {"POST", "faults", `{"status":503}`, 204},
		"fault, no JSON":    {"POST", "faults", `status`, 400},
		"fault, unknown":    {"POST", "faults", `{"stauts":503}`, 400},
		"fault, kind":       {"POST", "faults", `{"kind":"post"}`, 400},
		"fault, status":     {"POST", "faults", `{"status":50}`, 400},
		"fault, duration":   {"POST", "faults", `{"delay":5}`, 400},
		"fault, no unit":    {"POST", "faults", `{"delay":"5"}`, 400},
		"reset":             {"POST", "reset", "", 204},
		"status":            {"POST", "jobs/{id}/status", `{"status":"archived"}`, 204},
		"status, empty":     {"POST", "jobs/{id}/status", `{}`, 400},
		"status, no JSON":   {"POST", "jobs/{id}/status", `x`, 400},
		"status, no job":    {"POST", "jobs/job_none/status", `{"status":"failed"}`, 404},
		"delete":            {"DELETE", "jobs/{id}", "", 204},
		"delete, no job":    {"DELETE", "jobs/job_none", "", 404},
		"unknown":           {"GET", "nothing", "", 404},
		"root":              {"GET", "", "", 404},
		"other method":      {"POST", "requests", "", 404},
		"GET of one job":    {"GET", "jobs/{id}", "", 404},
		"DELETE of nothing": {"DELETE", "jobs/", "", 404},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := simulator.New(simulator.Options{Key: canary})
			path := "/_simulator/" + strings.ReplaceAll(tt.path, "{id}", s.Create("proj", "x").ID)
			if got := call(t, s, tt.method, path, tt.body); got.status != tt.want {
				t.Errorf("status %d, want %d: %s", got.status, tt.want, got.body)
			}
			r := newRequest(t, tt.method, "http://simulator"+path, tt.body)
			r.Header.Set("Authorization", "Bearer wrong")
			if got := serve(s, r); got.status != 401 {
				t.Errorf("with a wrong key: status %d", got.status)
			}
			if n := len(s.Requests()); n != 0 {
				t.Errorf("%d requests recorded", n)
			}
		})
	}
}

// Everything a process on its own can do, seen through the wire.
func TestControlEffects(t *testing.T) { synctest.Test(t, controlEffects) }

func controlEffects(t *testing.T) {
	s := simulator.New(simulator.Options{Key: canary})
	id := createID(t, s, "x")
	time.Sleep(5 * time.Second)
	get(t, s, id)

	decode := func(path string, value any) {
		t.Helper()
		if err := json.Unmarshal([]byte(call(t, s, "GET", "/_simulator/"+path, "").body), value); err != nil {
			t.Fatal(err)
		}
	}
	var requests []simulator.Request
	decode("requests", &requests)
	if diff := cmp.Diff(s.Requests(), requests, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("requests (-direct +wire):\n%s", diff)
	}
	var counts simulator.Counts
	decode("counts", &counts)
	if want := (simulator.Counts{Create: 1, Get: 1}); counts != want {
		t.Errorf("counts %+v", counts)
	}
	var jobs []simulator.Job
	decode("jobs", &jobs)
	if diff := cmp.Diff(s.Jobs(), jobs); diff != "" || !jobs[0].EndedAt.Equal(start.Add(2*time.Second)) {
		t.Errorf("jobs (-direct +wire):\n%s", diff)
	}

	call(t, s, "POST", "/_simulator/jobs/"+id+"/status", `{"status":"archived"}`)
	if got := status(t, s, id); got != "archived" {
		t.Errorf("status %v", got)
	}
	call(t, s, "POST", "/_simulator/faults", `{"kind":"get","status":503,"times":-1}`)
	if got := get(t, s, id).status; got != 503 {
		t.Errorf("with a fault: %d", got)
	}
	call(t, s, "POST", "/_simulator/reset", "")
	if s.Counts() != (simulator.Counts{}) {
		t.Errorf("after the reset: %v", s.Counts())
	}
	if got := get(t, s, id).status; got != 200 {
		t.Errorf("after the reset: %d", got)
	}
	call(t, s, "DELETE", "/_simulator/jobs/"+id, "")
	if got := get(t, s, id).status; got != 404 {
		t.Errorf("after the delete: %d", got)
	}
}

func TestFaultJSON(t *testing.T) {
	full := simulator.Fault{
		Kind: simulator.KindMessage, Project: "p", JobID: "j", PromptContains: "c", Times: -1, Skip: 2,
		Delay: 1500 * time.Millisecond, AfterEffect: true, Status: 503, Header: map[string]string{"A": "b"},
		Body: "x", ContentType: "text/plain", RetryAfter: "5", Drop: true, Truncate: 7, Slow: time.Minute,
	}
	const want = `{"kind":"message","project":"p","jobId":"j","promptContains":"c","times":-1,"skip":2,` +
		`"afterEffect":true,"status":503,"header":{"A":"b"},"body":"x","contentType":"text/plain","retryAfter":"5",` +
		`"drop":true,"truncate":7,"delay":"1.5s","slow":"1m0s"}`
	data, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	got := simulator.Fault{Body: "from before"}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}
