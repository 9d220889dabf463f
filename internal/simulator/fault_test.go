// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator_test

import (
	"context"
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
		"cleared":        {[]simulator.Fault{{Status: 500, Times: -1}, {}}, []step{{"CLEAR", "", "", 0}, get(200)}},
		"before the key": {[]simulator.Fault{{Status: 403}}, []step{{"GET", "/unauthorized", "", 403}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := simulator.New(simulator.Options{Key: canary})
			job := s.Create("proj", "existing")
			s.Inject(tt.faults...)
			for i, st := range tt.steps {
				if st.method == "CLEAR" {
					s.ClearFaults()
					continue
				}
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

func TestFaultResponse(t *testing.T) {
	tests := map[string]struct {
		fault      simulator.Fault
		wantStatus int
		wantJobs   int
		want       [3]string // body, if it is not the normal one; Content-Type; Retry-After
	}{
		"nothing":        {simulator.Fault{}, 201, 1, [3]string{"", "application/json", ""}},
		"status":         {simulator.Fault{Status: 503}, 503, 0, [3]string{}},
		"body":           {simulator.Fault{Status: 201, Body: `{"id":`}, 201, 0, [3]string{`{"id":`, "application/json", ""}},
		"retry after":    {simulator.Fault{Status: 429, RetryAfter: "soon"}, 429, 0, [3]string{"", "", "soon"}},
		"after effect":   {simulator.Fault{Status: 500, AfterEffect: true}, 500, 1, [3]string{}},
		"effect, normal": {simulator.Fault{AfterEffect: true}, 201, 1, [3]string{"", "application/json", ""}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := simulator.New(simulator.Options{Key: canary})
			s.Inject(tt.fault)
			got := create(t, s, "x")
			if got.status != tt.wantStatus || len(s.Jobs()) != tt.wantJobs || s.Requests()[0].Status != tt.wantStatus {
				t.Errorf("status %d, want %d; %d jobs, want %d; record %+v", got.status, tt.wantStatus, len(s.Jobs()), tt.wantJobs, s.Requests())
			}
			if tt.fault.Status == 0 {
				got.body = ""
			}
			if diff := cmp.Diff(tt.want, [3]string{got.body, got.header.Get("Content-Type"), got.header.Get("Retry-After")}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A delay ends with its request, and others are served meanwhile; a drop is the
// same without a delay.
func TestFaultWithoutResponse(t *testing.T) {
	for _, fault := range []simulator.Fault{{Delay: time.Hour}, {Delay: time.Hour, AfterEffect: true}, {Drop: true}, {Drop: true, AfterEffect: true}} {
		synctest.Test(t, func(t *testing.T) {
			s := simulator.New(simulator.Options{Key: canary})
			s.Inject(fault)
			ctx, cancel := context.WithTimeout(t.Context(), fault.Delay/60)
			defer cancel()
			if fault.Drop {
				ctx = t.Context()
			}
			done := make(chan time.Duration, 1)
			go func() {
				defer func() { done <- time.Since(start) }()
				defer expectAbort(t)
				serve(s, newRequest(t, "POST", "http://simulator/v2/agent/proj/job", `{"prompt":"x"}`).WithContext(ctx))
			}()
			synctest.Wait()
			if got := get(t, s, "none").status; got != 404 || s.Counts() != (simulator.Counts{Create: 1, Get: 1}) {
				t.Errorf("in the meantime: %d, counts %v", got, s.Counts())
			}
			if d, jobs := <-done, len(s.Jobs()); d != fault.Delay/60 || (jobs == 1) != fault.AfterEffect {
				t.Errorf("%+v: ended after %v with %d jobs", fault, d, jobs)
			}
		})
	}
}

// expectAbort recovers the panic of an answer that breaks off.
func expectAbort(t *testing.T) {
	t.Helper()
	if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
		t.Errorf("recovered %v, want http.ErrAbortHandler", err)
	}
}
