// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestLimits_plan(t *testing.T) {
	two := Limit{Setting: "max_new_jobs = 2", Max: 2}
	for name, test := range map[string]struct {
		limit Limit
		calls []int64
		fails int // the call that returns an error, from 1
	}{
		"no limit":                         {Limit{}, []int64{1, 1, 1}, 0},
		"none allowed":                     {Limit{Setting: "max_new_jobs = 0"}, []int64{1, 1}, 1},
		"one error for all beyond it":      {two, []int64{1, 1, 1, 1}, 3},
		"a replacement that is taken over": {two, []int64{1, 1, -1, 1}, 0},
		"one error when taken over later":  {two, []int64{1, 1, 1, -1, 1}, 3},
	} {
		limits := Limits{NewJobs: test.limit}
		for i, n := range test.calls {
			if err := limits.plan(newJobs, n); (err != nil) != (i+1 == test.fails) {
				t.Errorf("%s: call %d: %v", name, i+1, err)
			}
		}
		if limits.plan(messages, 1) != nil {
			t.Errorf("%s: jobs count as messages", name)
		}
	}
}

func TestLimits_concurrentCallers(t *testing.T) {
	limits := Limits{Messages: Limit{Setting: "max_messages = 10", Max: 10}}
	var refused, allowed atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if limits.plan(messages, 1) != nil {
				refused.Add(1)
			}
			if limits.send(messages) == nil {
				allowed.Add(1)
			}
		})
	}
	all.Wait()
	if refused.Load() != 1 || allowed.Load() != 10 {
		t.Errorf("%d errors of the plan, want 1; %d requests allowed, want 10", refused.Load(), allowed.Load())
	}
}
