// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

func TestAwaitWait(t *testing.T) {
	s := startService()
	defer s.stop()
	job := s.Create(project, firstPrompt)
	s.SetStatus(job.ID, "completed")
	call := func(method, path, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.url+"/v2/agent/"+project+"/job/"+job.ID+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+s.key)
		r.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
			t.Fatal(response.Status, err)
		}
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	before := s.Counts()
	call("GET", "", "") // the refresh
	if err := s.awaitWait(ended, before); !errors.Is(err, context.Canceled) {
		t.Errorf("after the refresh: %v", err)
	}
	call("POST", "/message", `{"prompt":"more"}`)
	if err := s.awaitWait(ended, before); !errors.Is(err, context.Canceled) {
		t.Errorf("after the message: %v", err)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- s.awaitWait(t.Context(), before) }()
	for len(waiting) == 0 {
		call("GET", "", "") // a poll
	}
	if err := <-waiting; err != nil {
		t.Errorf("after a poll: %v", err)
	}
}

func TestCheckService(t *testing.T) {
	tests := map[string]struct {
		prompts []string // each a job of its own
		leaks   []string
		want    []bool
	}{
		"no job":   {want: []bool{false, true, true}},
		"two jobs": {prompts: []string{firstPrompt, secondPrompt}, want: []bool{false, true, true}},
		"leaks":    {leaks: []string{"the output of plan"}, want: []bool{false, true, false}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := &demo{service: &service{Server: simulator.New(simulator.Options{})}, leaks: test.leaks}
			for _, prompt := range test.prompts {
				d.service.Create(project, prompt)
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
