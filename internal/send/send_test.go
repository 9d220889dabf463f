// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package send

import (
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
)

// What is not known to have had no effect may have had one, and is not sent again.
func TestOutcome(t *testing.T) {
	for err, want := range map[error]Result{
		nil: Sent,
		&agentapi.Error{Class: agentapi.ErrNotSent}:        NoEffect,
		&agentapi.Error{Class: agentapi.ErrRefused}:        NoEffect,
		&agentapi.Error{Class: agentapi.ErrUnknownOutcome}: Unknown,
		io.EOF: Unknown,
	} {
		if got := new(Sender{Journal: journal.Discard()}).Begin(t.Context(), Request{}).outcome(nil, err).Result; got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

func TestLimits_Plan(t *testing.T) {
	type plan struct {
		kind  Kind
		jobID string
	}
	create, replaceA, replaceB := plan{Create, ""}, plan{Create, "a"}, plan{Create, "b"} // a replacement's second call is create
	jobs := func(most int64) [2]Limit { return [2]Limit{Create: {Setting: "max_new_jobs", Max: most}} }
	for name, test := range map[string]struct {
		limit [2]Limit
		plans []plan
		fails int // the call that returns an error, from 1
	}{
		"no limit":                    {[2]Limit{}, []plan{create, create}, 0},
		"none allowed":                {jobs(0), []plan{create, create}, 1},
		"one error for all beyond it": {jobs(2), []plan{create, replaceA, create, create, replaceB, create}, 4},
		"planned again":               {jobs(2), []plan{replaceA, create, replaceB, create, replaceA, create, replaceB, create}, 0},
		"messages, of which a refresh turns one into a replacement": {
			[2]Limit{Message: {Setting: "max_messages", Max: 1}},
			[]plan{{Message, "a"}, {Message, "a"}, replaceA, create, {Message, "b"}, {Message, "a"}}, 6,
		},
	} {
		limits := Limits{Limit: test.limit}
		for i, plan := range test.plans {
			if err := limits.Plan(plan.kind, plan.jobID); (err != nil) != (i+1 == test.fails) {
				t.Errorf("%s: call %d: %v", name, i+1, err)
			}
		}
	}
}

// With default settings, a CLI applies ten resources at once, of which at least one has sent its request before the
// 21st is planned again.
func TestLimits_Plan_inApply(t *testing.T) {
	limits := Limits{Limit: [2]Limit{Create: {Setting: "max_new_jobs = 1", Max: 1}}}
	for range 2 {
		if err := limits.Plan(Create, ""); err != nil {
			t.Errorf("a plan in an apply: %v", err)
		}
		_ = limits.send(Create)
	}
	if err := limits.send(Create); err == nil {
		t.Error("a request beyond the limit is sent")
	}
}

func TestLimits_concurrentCallers(t *testing.T) {
	most := [2]Limit{Message: {Setting: "max_messages = 10", Max: 10}}
	planning, applying := Limits{Limit: most}, Limits{Limit: most}
	var refused, allowed atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if planning.Plan(Message, "") != nil {
				refused.Add(1)
			}
			if applying.send(Message) == nil {
				allowed.Add(1)
			}
		})
	}
	all.Wait()
	if refused.Load() != 1 || allowed.Load() != 10 {
		t.Errorf("%d errors of the plan, want 1; %d requests allowed, want 10", refused.Load(), allowed.Load())
	}
}
