// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// Which requests a queue of faults is used for: each step is a request and
// the status it gets.
func TestFaultQueue(t *testing.T) {
	const createPath, jobPath = "/v2/agent/proj/job", "/v2/agent/proj/job/{id}"
	type step struct {
		method, path, prompt string
		want                 int
	}
	create := func(want int) step { return step{"POST", createPath, "new", want} }
	get := func(want int) step { return step{"GET", jobPath, "", want} }
	tests := map[string]struct {
		faults []simulator.Fault
		steps  []step
	}{
		"once":           {[]simulator.Fault{{Status: 500}}, []step{create(500), create(201)}},
		"times":          {[]simulator.Fault{{Status: 500, Times: 2}}, []step{get(500), create(500), get(200)}},
		"for ever":       {[]simulator.Fault{{Status: 500, Times: -1}}, []step{get(500), get(500), get(500), get(500)}},
		"in turn":        {[]simulator.Fault{{Status: 500}, {Status: 502}}, []step{get(500), get(502), get(200)}},
		"skip":           {[]simulator.Fault{{Status: 500, Skip: 2}}, []step{get(200), get(200), get(500), get(200)}},
		"skip in turn":   {[]simulator.Fault{{Status: 500, Skip: 1}, {Status: 502, Skip: 1}}, []step{get(200), get(500), get(200), get(502), get(200)}},
		"by kind":        {[]simulator.Fault{{Kind: simulator.KindCreate, Status: 500}, {Kind: simulator.KindGet, Status: 502}}, []step{get(502), create(500)}},
		"skip by kind":   {[]simulator.Fault{{Kind: simulator.KindCreate, Skip: 1, Status: 500}}, []step{get(200), create(201), get(200), create(500)}},
		"kind message":   {[]simulator.Fault{{Kind: simulator.KindMessage, Status: 500}}, []step{create(201), {"POST", jobPath + "/message", "x", 500}}},
		"kind other":     {[]simulator.Fault{{Kind: simulator.KindOther, Status: 500}}, []step{create(201), {"GET", "/", "", 500}}},
		"by project":     {[]simulator.Fault{{Project: "other", Status: 500}}, []step{create(201), {"POST", "/v2/agent/other/job", "x", 500}}},
		"by job":         {[]simulator.Fault{{JobID: "job_none", Status: 500}}, []step{create(201), get(200), {"GET", createPath + "/job_none", "", 500}}},
		"by prompt":      {[]simulator.Fault{{PromptContains: "two", Status: 500}}, []step{create(201), get(200), {"POST", createPath, "one two", 500}}},
		"GET by prompt":  {[]simulator.Fault{{Kind: simulator.KindGet, PromptContains: "exist", Status: 500}}, []step{create(201), get(500)}},
		"before the key": {[]simulator.Fault{{Status: 403}}, []step{{"GET", "/unauthorized", "", 403}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := simulator.New(simulator.Options{Key: canary})
			job := s.Create("proj", "existing")
			s.Inject(tt.faults...)
			for i, st := range tt.steps {
				body := ""
				if st.prompt != "" {
					body = `{"prompt":"` + st.prompt + `"}`
				}
				got := call(t, s, st.method, strings.ReplaceAll(st.path, "{id}", job.ID), body)
				if got.status != st.want {
					t.Errorf("step %d: %d, want %d", i, got.status, st.want)
				}
			}
		})
	}
}

func TestClearFaults(t *testing.T) {
	s := simulator.New(simulator.Options{Key: canary})
	s.Inject(simulator.Fault{Status: 500, Times: -1})
	s.ClearFaults()
	if got := create(t, s, "x").status; got != 201 {
		t.Errorf("status %d", got)
	}
}

func TestFaultAnswer(t *testing.T) {
	normal := func(*testing.T, reply) {}
	body := func(want string) func(*testing.T, reply) {
		return func(t *testing.T, r reply) {
			if r.body != want {
				t.Errorf("body %q, want %q", r.body, want)
			}
		}
	}
	header := func(name, want string) func(*testing.T, reply) {
		return func(t *testing.T, r reply) {
			if got := r.header.Get(name); got != want {
				t.Errorf("%s %q, want %q", name, got, want)
			}
		}
	}
	tests := map[string]struct {
		fault      simulator.Fault
		wantStatus int
		wantJobs   int
		check      func(*testing.T, reply)
	}{
		"nothing":        {simulator.Fault{}, 201, 1, header("Content-Type", "application/json")},
		"status":         {simulator.Fault{Status: 503}, 503, 0, body("")},
		"no type":        {simulator.Fault{Status: 503}, 503, 0, header("Content-Type", "")},
		"body":           {simulator.Fault{Body: `{"id":`}, 201, 0, body(`{"id":`)},
		"JSON type":      {simulator.Fault{Status: 400, Body: `{}`}, 400, 0, header("Content-Type", "application/json")},
		"HTML":           {simulator.Fault{Status: 502, Body: "<html>", ContentType: "text/html"}, 502, 0, header("Content-Type", "text/html")},
		"retry after":    {simulator.Fault{Status: 429, RetryAfter: "soon"}, 429, 0, header("Retry-After", "soon")},
		"header":         {simulator.Fault{Status: 307, Header: map[string]string{"location": "http://x/"}}, 307, 0, header("Location", "http://x/")},
		"header only":    {simulator.Fault{Header: map[string]string{"Date": "never"}}, 201, 1, header("Date", "never")},
		"after effect":   {simulator.Fault{Status: 500, AfterEffect: true}, 500, 1, body("")},
		"effect, normal": {simulator.Fault{AfterEffect: true}, 201, 1, normal},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := simulator.New(simulator.Options{Key: canary})
			s.Inject(tt.fault)
			got := create(t, s, "x")
			if got.status != tt.wantStatus || len(s.Jobs()) != tt.wantJobs {
				t.Errorf("status %d, want %d; %d jobs, want %d", got.status, tt.wantStatus, len(s.Jobs()), tt.wantJobs)
			}
			tt.check(t, got)
			if r := s.Requests()[0]; r.Status != tt.wantStatus {
				t.Errorf("recorded status %d", r.Status)
			}
		})
	}
}

func TestFaultAfterMessage(t *testing.T) {
	s := simulator.New(simulator.Options{Key: canary})
	id := createID(t, s, "x")
	s.Inject(simulator.Fault{Status: 500}, simulator.Fault{Status: 500, AfterEffect: true})
	message(t, s, id, "lost")
	message(t, s, id, "taken")
	job, _ := s.Job(id)
	if diff := cmp.Diff([]string{"x", "taken"}, job.Prompts); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
}

// An end that a fault hides is not shown.
func TestFirstTerminalGetBehindFault(t *testing.T) { synctest.Test(t, firstTerminalGetBehindFault) }

func firstTerminalGetBehindFault(t *testing.T) {
	s := simulator.New(simulator.Options{Key: canary, Script: scripted(simulator.Script{})})
	id := createID(t, s, "x")
	s.Inject(simulator.Fault{Kind: simulator.KindGet, Status: 500, AfterEffect: true}, simulator.Fault{Kind: simulator.KindGet, Truncate: 3})
	get(t, s, id)
	time.Sleep(time.Second)
	func() {
		defer expectAbort(t)
		get(t, s, id)
	}()
	if job, _ := s.Job(id); !job.FirstTerminalGet.IsZero() {
		t.Error("a hidden end counts as shown")
	}
	time.Sleep(time.Second)
	get(t, s, id)
	if job, _ := s.Job(id); !job.FirstTerminalGet.Equal(start.Add(2 * time.Second)) {
		t.Errorf("shown at %v", job.FirstTerminalGet)
	}
}

// An answer that was on its way when a message revived the job shows an end of
// the past.
func TestFirstTerminalGetBehindMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulator.New(simulator.Options{Key: canary, Script: scripted(simulator.Script{}, simulator.Script{Duration: time.Hour})})
		id := createID(t, s, "x")
		s.Inject(simulator.Fault{Kind: simulator.KindGet, AfterEffect: true, Delay: time.Minute})
		done := make(chan any, 1)
		go func() { done <- status(t, s, id) }()
		synctest.Wait()
		message(t, s, id, "y")
		if got := <-done; got != "completed" {
			t.Errorf("the delayed answer shows %v", got)
		}
		if job, _ := s.Job(id); !job.FirstTerminalGet.IsZero() {
			t.Error("it counts for the new turn")
		}
	})
}

// expectAbort recovers the panic of an answer that breaks off.
func expectAbort(t *testing.T) {
	t.Helper()
	if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
		t.Errorf("recovered %v, want http.ErrAbortHandler", err)
	}
}
