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

// An error of an unexpected kind says nothing about the request, so that is not sent again.
func TestOutcome(t *testing.T) {
	o := new(Sender{Journal: journal.InMemory()}).Begin(t.Context(), Request{Wanted: journal.Wanted{Recipient: "J"}})
	if got := o.outcome(nil, io.EOF); got.Result != Unknown || got.JobID != "J" {
		t.Errorf("%+v", got)
	}
}

// A store that cannot be relied on is found out before a connection to the service is open.
func TestSend_proves(t *testing.T) {
	store := fakes3.New(t)
	store.IgnoreIfMatch = true
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := Sender{Journal: inBucket(t, store), Client: dialing(func(context.Context, string, string) (net.Conn, error) {
		t.Error("connects")
		cancel()
		return nil, io.EOF
	})}
	for _, job := range []string{"", "J"} {
		r := Request{Wanted: journal.Wanted{Project: "p", Name: "n" + job, Recipient: job, Prompt: "x"}, Body: agentapi.PostBody{Prompt: "x"}}
		got := s.Begin(ctx, r).Send(ctx)
		if _, isJournal := errors.AsType[*journal.Error](got.Err); got.Result != NoEffect || !isJournal {
			t.Errorf("%+v", got)
		}
	}
}

// open returns a journal of the run 1.
func open(location place.Location) *journal.Journal {
	process := &cli.Process{Run: "1", Self: cli.ProcessID{Start: "1"}, Ended: func(cli.ProcessID) bool { return false }}
	return journal.Open(process, journal.Options{Place: place.Place{Location: location}, RequestTimeout: time.Second})
}

func inBucket(t *testing.T, store *fakes3.Server) *journal.Journal {
	t.Helper()
	location, err := place.ParseURL(store.URL)
	if err != nil {
		t.Fatal(err)
	}
	return open(location)
}

// dialing returns a client that reaches the service so.
func dialing(dial agentapi.Dial) *agentapi.Client {
	return agentapi.New(agentapi.Config{
		BaseURL: &url.URL{Scheme: "http", Host: "127.0.0.1"}, Key: agentapi.NewKey("key"), RequestTimeout: time.Second, MaxPollsPerSecond: 1, Dial: dial,
	})
}

// If the store fails before an adoption is in it, only the state can keep a job whose name a Delete of this run has freed; and so without
// a journal, if the job cannot be read. Any other one is adopted by the next apply.
func TestSend_cannotAdopt(t *testing.T) {
	for name, want := range map[string]Outcome{
		"left": {Result: JournalUnusable, JobID: "J"}, "had": {Result: JournalUnusable}, "in memory": {Result: Unreadable, JobID: "J"},
	} {
		store := fakes3.New(t)
		j := inBucket(t, store)
		if name == "in memory" {
			j = journal.InMemory()
		}
		r := Request{Wanted: journal.Wanted{Project: "p", Name: "n", Prompt: "x"}, PlannedJob: "J"}
		call := j.Begin(t.Context(), r.Wanted)
		if err := errors.Join(call.Claim(), call.BeforeBody()); err != nil {
			t.Fatal(err)
		}
		call.Accepted("J")
		if name == "left" {
			if _, err := j.Remove(t.Context(), journal.Object{Project: "p", Name: "n", JobID: "J"}, journal.Leave); err != nil {
				t.Fatal(err)
			}
		}
		store.SetHook(func(r *http.Request) int { return map[bool]int{true: http.StatusForbidden}[fakes3.Op(r) == "write"] })
		interrupted, cancel := context.WithCancel(t.Context()) // so that no read works
		cancel()
		s := Sender{Journal: j, Client: dialing(nil)}
		if got := s.Begin(t.Context(), r).Send(interrupted); got.Result != want.Result || got.JobID != want.JobID {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// A limit that others have reached during a claim leaves no claim.
func TestClaim_limitReached(t *testing.T) {
	store := fakes3.New(t)
	s := Sender{Journal: inBucket(t, store)}
	s.Limits.ByKind[Create] = Limit{Setting: "max_new_jobs = 1", Max: 1}
	store.SetHook(func(r *http.Request) int {
		if fakes3.Op(r) == "write" {
			_ = s.Limits.take(Create)
		}
		return 0
	})
	err := s.Begin(t.Context(), Request{Wanted: journal.Wanted{Project: "p", Name: "n"}}).recorder.Claim()
	records, err2 := s.Journal.All(t.Context())
	if _, isLimit := errors.AsType[*LimitError](err); !isLimit || err2 != nil || len(records) != 1 || records[0].Claim != nil {
		t.Errorf("%v, %+v, %v", err, records, err2)
	}
}

func TestLimits_Plan(t *testing.T) {
	type plan struct {
		Request
		isSure bool
	}
	create := func(name string) plan { return plan{Request{Wanted: journal.Wanted{Name: name}}, true} }
	message := func(name, job string) plan {
		return plan{Request{Wanted: journal.Wanted{Name: name, Recipient: job}}, true}
	}
	perhaps := func(p plan) plan { p.isSure = false; return p }
	a, b, c, d, unnamed := create("a"), create("b"), create("c"), create("d"), create("")
	jobs := func(most int64) [2]Limit { return [2]Limit{Create: {Setting: "max_new_jobs", Max: most}} }
	messages := [2]Limit{Message: {Setting: "max_messages", Max: 1}}
	for name, test := range map[string]struct {
		limit [2]Limit
		plans []plan
		want  string // of each call: an Error, a Warning because the plan is not sure, or nothing
	}{
		"no limit":                      {plans: []plan{a, b}, want: ".."},
		"none allowed":                  {jobs(0), []plan{a, b}, "E."},
		"one error for all beyond it":   {jobs(2), []plan{a, b, c, d}, "..E."},
		"planned again":                 {jobs(2), []plan{a, a, b, a, b}, "....."},
		"names not known yet":           {jobs(2), []plan{unnamed, unnamed, unnamed}, "..E"},
		"not sure":                      {jobs(2), []plan{perhaps(a), perhaps(b), perhaps(c), perhaps(d)}, "..W."},
		"… of the first ones":           {jobs(2), []plan{perhaps(a), perhaps(b), c, d}, "..W."},
		"… of the last ones":            {jobs(2), []plan{a, b, perhaps(c), perhaps(d)}, "..W."},
		"… and too many for sure":       {jobs(1), []plan{perhaps(a), perhaps(b), c, d}, ".W.E"},
		"… and sure when planned again": {jobs(1), []plan{perhaps(a), perhaps(b), a, b}, ".W.E"},
		"… then sure, and one between":  {jobs(1), []plan{perhaps(a), b, a}, ".WE"},
		"messages to imported jobs":     {messages, []plan{message("", "1"), message("", "1"), message("", "2")}, "..E"},
		"messages, of which a refresh turns one into a replacement": {
			messages, []plan{message("a", "1"), message("a", "1"), a, message("b", "2"), message("a", "1")}, "....E",
		},
		"… and that one has reported the error of all": {
			messages, []plan{message("a", "1"), message("b", "2"), message("c", "3"), b, message("c", "3")}, ".E..E",
		},
	} {
		limits, got := Limits{ByKind: test.limit}, ""
		for _, plan := range test.plans {
			switch err := limits.Plan(plan.Request, plan.isSure); {
			case err == nil:
				got += "."
			case err.IsSure:
				got += "E"
			default:
				got += "W"
			}
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestLimits_concurrentCallers(t *testing.T) {
	limits := Limits{ByKind: [2]Limit{Message: {Setting: "max_messages = 10", Max: 10}}}
	var refused, allowed atomic.Int64
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			if limits.Plan(Request{Wanted: journal.Wanted{Recipient: fmt.Sprint(i)}}, true) != nil {
				refused.Add(1)
			}
			if limits.take(Message) == nil {
				allowed.Add(1)
			}
		})
	}
	all.Wait()
	if refused.Load() != 1 || allowed.Load() != 10 {
		t.Errorf("%d errors of the plan, want 1; %d requests allowed, want 10", refused.Load(), allowed.Load())
	}
}
