// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// What directives make of a job that would take a minute: how long it is
// active, and how it ends.
func TestDirectives(t *testing.T) {
	t.Parallel()
	type end struct {
		after  time.Duration // -1: it does not end within the hour
		status string
		link   bool
	}
	tests := map[string]end{
		"Add a quickstart":               {time.Minute, "completed", true},
		"a [simulate: 30s] b":            {30 * time.Second, "completed", true},
		"[simulate: 1m30s, failed]":      {90 * time.Second, "failed", false},
		"[simulate:archived,0s]":         {0, "archived", true},
		"[simulate: active ]":            {-1, "active", false},
		"[simulate: completed]":          {time.Minute, "completed", true},
		"[simulate: no-pull-request]":    {time.Minute, "completed", false},
		"[simulate: 1s, 9s]":             {9 * time.Second, "completed", true},
		"[simulate: 20s, stale=5s] more": {20 * time.Second, "completed", true},
	}
	for prompt, want := range tests {
		t.Run(prompt, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := simulator.New(simulator.Options{Key: canary, Script: scripted(simulator.Script{Duration: time.Minute})})
				id, start := createID(t, s, prompt), time.Now()
				got := end{after: -1}
				for range 3601 {
					r := get(t, s, id).object(t)
					got.status, got.link = r["status"].(string), r["prLink"] != nil
					if got.status != "active" {
						got.after = time.Since(start)
						break
					}
					time.Sleep(time.Second)
				}
				if got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
			})
		})
	}
}

func TestStaleDirective(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := simulator.New(simulator.Options{Key: canary, Script: scripted(simulator.Script{}, simulator.Script{})})
		id := createID(t, s, "x")
		message(t, s, id, "y [simulate: 1m, stale=5s]")
		for _, want := range []string{"completed", "active"} {
			if got := status(t, s, id); got != want {
				t.Errorf("shown %v, want %s", got, want)
			}
			time.Sleep(5 * time.Second)
		}
	})
}

// A directive with a typo is refused, whatever the script, and nothing happens.
func TestUnknownDirectives(t *testing.T) {
	t.Parallel()
	tests := map[string]string{ // to what the answer says
		"[simulate: 30]":                "the simulator does not know \"30\" in [simulate: …]",
		"[simulate: -1s]":               `does not know "-1s"`,
		"[simulate: stale=-5s]":         `does not know "stale=-5s"`,
		"[simulate: 1s, fail]":          `does not know "fail"`,
		"[simulate: 1s,]":               `does not know ""`,
		"[simulate:]":                   "it takes a duration such as 30s, completed, failed, archived, active, no-pull-request and stale=5s",
		"[simulate: 30s":                "takes one [simulate: …] in a prompt, closed by ]",
		"[simulate: 1s] [simulate: 9s]": "takes one [simulate: …] in a prompt, closed by ]",
	}
	for prompt, want := range tests {
		t.Run(prompt, func(t *testing.T) {
			t.Parallel()
			s := simulator.New(simulator.Options{Key: canary})
			id := createID(t, s, "x")
			for name, got := range map[string]reply{"create": create(t, s, prompt), "message": message(t, s, id, prompt)} {
				text, _ := got.object(t)["error"].(string)
				if got.status != 400 || !strings.Contains(text, want) {
					t.Errorf("%s: %d, %s, want 400, %s", name, got.status, text, want)
				}
			}
			if jobs := s.Jobs(); len(jobs) != 1 || len(jobs[0].Prompts) != 1 {
				t.Errorf("jobs %+v", jobs)
			}
		})
	}
}
