// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// send sends a request with the key, as the provider does, and returns the status.
func (s *service) send(t *testing.T, method, path, body string) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/v2/agent/"+project+"/job"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+s.key)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code
}

func newService() *service {
	return &service{key: "canary", Server: simulator.New(simulator.Options{Key: "canary"})}
}

func TestAwaitWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		id := s.Create(project, firstPrompt).ID
		ctx, cancel := context.WithCancel(t.Context())
		done, cancelled := make(chan error, 1), make(chan error, 1)
		before := s.Counts()
		go func() { done <- s.awaitWait(t.Context(), before) }()
		go func() { cancelled <- s.awaitWait(ctx, before) }()
		for _, step := range []struct{ name, method, path, body string }{
			{"the refresh", "GET", "/" + id, ""},
			{"the message", "POST", "/" + id + "/message", `{"prompt":"more"}`},
		} {
			if got := s.send(t, step.method, step.path, step.body); got != 200 {
				t.Fatalf("%s: %d", step.name, got)
			}
			time.Sleep(time.Minute)
			if len(done) > 0 {
				t.Errorf("it ends after %s", step.name)
			}
		}
		cancel()
		if err := <-cancelled; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		s.send(t, "GET", "/"+id, "") // a poll
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestCheckService(t *testing.T) {
	tests := map[string]struct {
		prompts  []string // of one job
		more     int      // jobs
		leaks    []string
		stranger bool // sends a request
		want     []bool
	}{
		"all is well":      {prompts: []string{firstPrompt, secondPrompt, thirdPrompt}, want: []bool{true, true, true}},
		"no job":           {want: []bool{false, true, true}},
		"a prompt missing": {prompts: []string{firstPrompt, thirdPrompt}, want: []bool{false, true, true}},
		"two jobs":         {prompts: []string{firstPrompt, secondPrompt, thirdPrompt}, more: 1, want: []bool{false, true, true}},
		"without the key":  {stranger: true, want: []bool{false, false, true}},
		"leaks":            {leaks: []string{"the output of plan"}, want: []bool{false, true, false}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := &demo{service: newService(), leaks: test.leaks}
			path, wantStatus := "", 201
			for _, prompt := range test.prompts {
				if got := d.service.send(t, "POST", path, `{"prompt":"`+prompt+`"}`); got != wantStatus {
					t.Fatal(got)
				}
				path, wantStatus = "/"+d.service.Jobs()[0].ID+"/message", 200
			}
			for range test.more {
				d.service.Create(project, firstPrompt)
			}
			if test.stranger {
				d.service.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
			}
			d.checkService()
			var got []bool
			for _, check := range d.report.checks {
				got = append(got, check.ok)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFindLeaks(t *testing.T) {
	d := &demo{screen: screen{Writer: &bytes.Buffer{}}, service: &service{key: "canary"}, dir: t.TempDir()}
	clean := step{name: "plan"}
	if err := d.findLeaks(clean, "nothing"); err != nil || len(d.leaks) > 0 {
		t.Errorf("found %v, %v", d.leaks, err)
	}
	writeFile(t, d.dir+"/terraform.tfstate", `{"key":"canary"}`)
	if err := d.findLeaks(clean, "… canary …"); err != nil || len(d.leaks) != 2 {
		t.Errorf("found %v, %v, want 2", d.leaks, err)
	}
}
