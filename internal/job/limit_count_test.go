// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLimits_plan(t *testing.T) {
	none, two := Limit{}, Limit{Setting: "max_new_jobs = 2", Max: 2}
	for _, test := range []struct {
		name  string
		limit Limit
		calls []int64
		want  []bool // which calls return an error
	}{
		{"no limit", none, []int64{1, 1, 1}, []bool{false, false, false}},
		{"none allowed", Limit{Setting: "max_new_jobs = 0"}, []int64{1, 1}, []bool{true, false}},
		{"up to the limit", two, []int64{1, 1}, []bool{false, false}},
		{"one error for all beyond it", two, []int64{1, 1, 1, 1}, []bool{false, false, true, false}},
		{"a replacement that is taken over", two, []int64{1, 1, -1, 1}, []bool{false, false, false, false}},
		{"one error when taken over later", two, []int64{1, 1, 1, -1, 1}, []bool{false, false, true, false, false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			limits := Limits{NewJobs: test.limit}
			var got []bool
			for _, n := range test.calls {
				got = append(got, limits.plan(newJobs, n) != nil)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if limits.plan(messages, 1) != nil {
				t.Error("jobs count as messages")
			}
		})
	}
}

func TestLimits_concurrentCallers(t *testing.T) {
	limits := Limits{Messages: Limit{Setting: "max_messages = 10", Max: 10}}
	var refusedInPlan, allowed atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if limits.plan(messages, 1) != nil {
				refusedInPlan.Add(1)
			}
			if limits.send(messages) == nil {
				allowed.Add(1)
			}
		})
	}
	all.Wait()
	if diff := cmp.Diff([2]int64{1, 10}, [2]int64{refusedInPlan.Load(), allowed.Load()}); diff != "" {
		t.Errorf("errors of the plan, and requests allowed (-want +got):\n%s", diff)
	}
}
