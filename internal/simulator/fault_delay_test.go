// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

func TestFaultTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulator.New(simulator.Options{Key: canary})
		took := func(f simulator.Fault, wantJobs int) time.Duration {
			t.Helper()
			s.Inject(f)
			before := time.Now()
			create(t, s, "x")
			if n := len(s.Jobs()); n != wantJobs {
				t.Errorf("%d jobs, want %d", n, wantJobs)
			}
			return time.Since(before)
		}
		if d := took(simulator.Fault{Delay: time.Hour}, 1); d != time.Hour {
			t.Errorf("delay took %v", d)
		}
		if d := took(simulator.Fault{Delay: time.Minute, Status: 503}, 1); d != time.Minute {
			t.Errorf("delayed fault took %v", d)
		}
		if d := took(simulator.Fault{Slow: time.Minute}, 2); d < 59*time.Second || d > time.Minute {
			t.Errorf("slow answer took %v", d)
		}
	})
}

// While one request is delayed others are served, and it ends with its context.
func TestDelayIsInterruptible(t *testing.T) {
	for name, tt := range map[string]struct {
		fault    simulator.Fault
		wantJobs int
	}{
		"before the effect": {simulator.Fault{Delay: time.Hour}, 0},
		"after the effect":  {simulator.Fault{Delay: time.Hour, AfterEffect: true}, 1},
		"slow answer":       {simulator.Fault{Slow: time.Hour}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulator.New(simulator.Options{Key: canary})
				s.Inject(tt.fault)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				before := time.Now()
				done := make(chan time.Duration, 1)
				go func() {
					defer func() { done <- time.Since(before) }()
					defer expectAbort(t)
					serve(s, newRequest(t, "POST", "http://simulator/v2/agent/proj/job", `{"prompt":"x"}`).WithContext(ctx))
				}()
				synctest.Wait()
				if got := get(t, s, "none").status; got != 404 {
					t.Errorf("in the meantime: %d", got)
				}
				if s.Counts() != (simulator.Counts{Create: 1, Get: 1}) {
					t.Errorf("counts %v", s.Counts())
				}
				if d := <-done; d != time.Minute {
					t.Errorf("ended after %v", d)
				}
				if n := len(s.Jobs()); n != tt.wantJobs {
					t.Errorf("%d jobs, want %d", n, tt.wantJobs)
				}
			})
		})
	}
}

// What a real client sees of a broken connection.
func TestFaultConnection(t *testing.T) {
	tests := map[string]struct {
		fault    simulator.Fault
		wantErr  error // of Do
		wantBody int   // bytes before the body breaks off
		wantJobs int
	}{
		"drop":              {fault: simulator.Fault{Drop: true}, wantErr: io.EOF},
		"drop after effect": {fault: simulator.Fault{Drop: true, AfterEffect: true}, wantErr: io.EOF, wantJobs: 1},
		"truncate":          {fault: simulator.Fault{Truncate: 9}, wantBody: 9, wantJobs: 1},
		"truncate at once":  {fault: simulator.Fault{Truncate: -1}, wantJobs: 1},
		"slow, truncate":    {fault: simulator.Fault{Truncate: 9, Slow: time.Millisecond}, wantBody: 9, wantJobs: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := simulator.New(simulator.Options{Key: canary})
			server := httptest.NewServer(s)
			defer server.Close()
			s.Inject(tt.fault)
			response, err := server.Client().Do(newRequest(t, "POST", server.URL+"/v2/agent/proj/job", `{"prompt":"x"}`))
			if !errors.Is(err, tt.wantErr) {
				t.Fatalf("error %v, want %v", err, tt.wantErr)
			}
			if err == nil {
				defer response.Body.Close()
				body, err := io.ReadAll(response.Body)
				if !errors.Is(err, io.ErrUnexpectedEOF) || len(body) != tt.wantBody || response.StatusCode != http.StatusCreated {
					t.Errorf("status %d, body %q, error %v", response.StatusCode, body, err)
				}
			}
			if n := len(s.Jobs()); n != tt.wantJobs || s.Count(simulator.KindCreate) != 1 {
				t.Errorf("%d jobs, %d creates", n, s.Count(simulator.KindCreate))
			}
		})
	}
}

// A delay outlives the timeouts of the server around it.
func TestDelayOutlivesServerTimeouts(t *testing.T) {
	s := simulator.New(simulator.Options{Key: canary})
	server := httptest.NewUnstartedServer(s)
	server.Config.ReadTimeout = 50 * time.Millisecond
	server.Config.WriteTimeout = 50 * time.Millisecond
	server.Start()
	defer server.Close()
	s.Inject(simulator.Fault{Delay: 200 * time.Millisecond})
	response, err := server.Client().Do(newRequest(t, "POST", server.URL+"/v2/agent/proj/job", `{"prompt":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		t.Errorf("status %d", response.StatusCode)
	}
}
