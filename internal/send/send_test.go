// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package send

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/place"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

// What is not known to have had no effect may have had one, and is not sent again.
func TestOutcome(t *testing.T) {
	for err, want := range map[error]Result{
		nil: Accepted,
		&agentapi.Error{Class: agentapi.ErrNotSent}:        NoEffect,
		&agentapi.Error{Class: agentapi.ErrRefused}:        NoEffect,
		&agentapi.Error{Class: agentapi.ErrUnknownOutcome}: Unknown,
		io.EOF: Unknown,
	} {
		if got := new(Sender{Journal: journal.InMemory()}).Begin(t.Context(), Request{}).outcome(nil, err).Result; got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

// A store that cannot be relied on is found out before a connection to the service is open.
func TestSend_proves(t *testing.T) {
	store := fakes3.New(t)
	store.IgnoreIfMatch = true
	location, err := place.ParseURL(store.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := agentapi.New(agentapi.Config{
		BaseURL: &url.URL{Scheme: "https", Host: "api.example.com"}, Key: agentapi.NewKey("key"), RequestTimeout: time.Second, MaxPollsPerSecond: 1,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			t.Error("connects")
			cancel()
			return nil, io.EOF
		},
	})
	s := Sender{Client: client, Journal: journal.Open(new(cli.Process), journal.Options{Place: place.Place{Location: location}})}
	for _, job := range []string{"", "J"} {
		r := Request{Wanted: journal.Wanted{Project: "p", Name: "n" + job, JobID: job, Prompt: "x"}, Body: agentapi.NewJob{Prompt: "x"}}
		got := s.Begin(ctx, r).Send(ctx)
		if _, isJournal := errors.AsType[*journal.Error](got.Err); got.Result != NoEffect || !isJournal || !errors.Is(got.Err, agentapi.ErrNotSent) {
			t.Errorf("%+v", got)
		}
	}
}

// If the store fails before an adoption is in it, only the state can keep a job whose name a Delete of this run has freed. Any other one
// is adopted by the next apply.
func TestSend_cannotAdopt(t *testing.T) {
	for name, want := range map[string]string{"left": "J", "had": ""} {
		store := fakes3.New(t)
		location, err := place.ParseURL(store.URL)
		if err != nil {
			t.Fatal(err)
		}
		process := &cli.Process{Run: "1", Self: cli.ProcessID{Start: "1"}, Ended: func(cli.ProcessID) bool { return false }}
		j := journal.Open(process, journal.Options{Place: place.Place{Location: location}})
		r := Request{Wanted: journal.Wanted{Project: "p", Name: "n", Prompt: "x"}, PlannedJob: "J"}
		call := j.Begin(t.Context(), r.Wanted)
		if err := errors.Join(call.Claim(), call.BeforeBody()); err != nil {
			t.Fatal(err)
		}
		call.Accepted("J")
		if name == "left" {
			if _, err := j.Free(t.Context(), journal.Object{Project: "p", Name: "n", JobID: "J"}, true); err != nil {
				t.Fatal(err)
			}
		}
		store.SetHook(func(r *http.Request) int { return map[bool]int{true: http.StatusForbidden}[fakes3.Op(r) == "write"] })
		s := Sender{Journal: j} // a request to the service would panic
		if got := s.Begin(t.Context(), r).Send(t.Context()); got.Result != JournalUnusable || got.JobID != want {
			t.Errorf("%s: %+v, want the job %q", name, got, want)
		}
	}
}

func TestLimits_Plan(t *testing.T) {
	create := func(name string) Request { return Request{Wanted: journal.Wanted{Name: name}} }
	message := func(name string) Request { return Request{Wanted: journal.Wanted{Name: name, JobID: "job-" + name}} }
	a, b, c, d, unnamed := create("a"), create("b"), create("c"), create("d"), create("")
	jobs := func(most int64) [2]Limit { return [2]Limit{Create: {Setting: "max_new_jobs", Max: most}} }
	messages := [2]Limit{Message: {Setting: "max_messages", Max: 1}}
	for name, test := range map[string]struct {
		limit  [2]Limit
		plans  []Request
		fails  int // the call that returns an error, from 1
		unsure int // how many of the plans, the first ones, may send nothing
		warns  int // the call that returns an error of which the plan is not sure
	}{
		"no limit":                    {plans: []Request{a, b}},
		"none allowed":                {limit: jobs(0), plans: []Request{a, b}, fails: 1},
		"one error for all beyond it": {limit: jobs(2), plans: []Request{a, b, c, d}, fails: 3},
		"planned again":               {limit: jobs(2), plans: []Request{a, a, b, a, b}},
		"names not known yet":         {limit: jobs(2), plans: []Request{unnamed, unnamed, unnamed}, fails: 3},
		"not sure":                    {limit: jobs(2), plans: []Request{a, b, c, d}, unsure: 4, warns: 3},
		"… of some of them":           {limit: jobs(2), plans: []Request{a, b, c, d}, unsure: 2, warns: 3},
		"… and too many for sure":     {limit: jobs(1), plans: []Request{a, b, c, d}, unsure: 2, warns: 2, fails: 4},
		"… and sure when planned again": {
			limit: jobs(1), plans: []Request{a, b, a, b}, unsure: 2, warns: 2, fails: 4,
		},
		"messages, of which a refresh turns one into a replacement": {
			limit: messages, plans: []Request{message("a"), message("a"), a, message("b"), message("a")}, fails: 5,
		},
		"messages to imported jobs": {
			limit: messages, plans: []Request{{Wanted: journal.Wanted{JobID: "1"}}, {Wanted: journal.Wanted{JobID: "1"}}, {Wanted: journal.Wanted{JobID: "2"}}}, fails: 3,
		},
	} {
		limits := Limits{Limit: test.limit}
		for i, request := range test.plans {
			err := limits.Plan(request, i >= test.unsure)
			if (err != nil) != (i+1 == test.fails || i+1 == test.warns) || err != nil && err.IsSure != (i+1 == test.fails) {
				t.Errorf("%s: call %d: %+v", name, i+1, err)
			}
		}
	}
}

func TestLimits_concurrentCallers(t *testing.T) {
	most := [2]Limit{Message: {Setting: "max_messages = 10", Max: 10}}
	planning, applying := Limits{Limit: most}, Limits{Limit: most}
	var refused, allowed atomic.Int64
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			if planning.Plan(Request{Wanted: journal.Wanted{JobID: fmt.Sprint(i)}}, true) != nil {
				refused.Add(1)
			}
			if applying.take(Message) == nil {
				allowed.Add(1)
			}
		})
	}
	all.Wait()
	if refused.Load() != 1 || allowed.Load() != 10 {
		t.Errorf("%d errors of the plan, want 1; %d requests allowed, want 10", refused.Load(), allowed.Load())
	}
}
