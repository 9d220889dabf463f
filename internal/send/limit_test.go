// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package send

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestLimits_Plan(t *testing.T) {
	two := Limit{Setting: "max_new_jobs = 2", Max: 2}
	for name, test := range map[string]struct {
		limit Limit
		plans []string // the jobs of replacements; empty: a resource without a job
		fails int      // the plan that returns an error, from 1
	}{
		"no limit":                    {Limit{}, []string{"", "", ""}, 0},
		"none allowed":                {Limit{Setting: "max_new_jobs = 0"}, []string{"", ""}, 1},
		"one error for all beyond it": {two, []string{"", "a", "", "b"}, 3},
		"planned again":               {two, []string{"a", "b", "a", "b", "a"}, 0},
	} {
		limits := Limits{Limit: [2]Limit{Create: test.limit}}
		for i, id := range test.plans {
			var errs []error
			for _, call := range []string{id, ""} { // with and without the job
				if err := limits.Plan(Create, call); err != nil {
					errs = append(errs, err)
				}
				if id == "" {
					break
				}
			}
			if (len(errs) > 0) != (i+1 == test.fails) {
				t.Errorf("%s: plan %d: %v", name, i+1, errs)
			}
		}
		if limits.Plan(Message, "a") != nil {
			t.Errorf("%s: jobs count as messages", name)
		}
	}
}

// A message that is planned again counts once, and not if a refresh turns it into a replacement.
func TestLimits_planAgain(t *testing.T) {
	limits := Limits{Limit: [2]Limit{Message: {Setting: "max_messages = 1", Max: 1}}}
	for _, plan := range []struct {
		kind  Kind
		jobID string
	}{{Message, "a"}, {Message, "a"}, {Create, "a"}, {Create, ""}, {Message, "b"}} {
		if err := limits.Plan(plan.kind, plan.jobID); err != nil {
			t.Errorf("%v: %v", plan, err)
		}
	}
	if limits.Plan(Message, "a") == nil {
		t.Error("two messages are allowed")
	}
}

func TestLimits_concurrentCallers(t *testing.T) {
	limits := Limits{Limit: [2]Limit{Message: {Setting: "max_messages = 10", Max: 10}}}
	var refused, allowed atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if limits.Plan(Message, "") != nil {
				refused.Add(1)
			}
			if limits.send(Message) == nil {
				allowed.Add(1)
			}
		})
	}
	all.Wait()
	if refused.Load() != 1 || allowed.Load() != 10 {
		t.Errorf("%d errors of the plan, want 1; %d requests allowed, want 10", refused.Load(), allowed.Load())
	}
}
