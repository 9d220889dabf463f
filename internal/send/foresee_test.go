// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package send

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/place"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// What the job of the record decides of a create with another prompt or other arguments: whether it stops, or what a plan says.
func TestForesee_beside(t *testing.T) {
	const none, message, recent = "", "message", "recent message"
	const beside = "sent beside it"
	gone, down := &agentapi.Error{Op: agentapi.OpGet, StatusCode: 404}, &agentapi.Error{Class: agentapi.ErrUnavailable}
	for _, row := range []struct {
		job  any    // its status, or an error
		last string // the request that the job was sent last, if it was no create
		same string // with the same arguments
		not  string // with others
	}{
		{agentapi.StatusActive, none, "running", beside},
		{agentapi.Status("of a later service"), none, "running", beside},
		{agentapi.Status(""), none, "running", beside},
		{agentapi.StatusCompleted, none, beside, "sent"},
		{agentapi.StatusFailed, none, "sent", "sent"},
		{agentapi.StatusArchived, none, "sent", "sent"},
		{agentapi.StatusCompleted, message, beside, "sent"},
		{agentapi.StatusCompleted, recent, "running", "sent"}, // the status may be that of before the message
		{agentapi.StatusFailed, recent, "running", "sent"},
		{gone, none, "sent", "sent"},
		{gone, recent, "sent", "sent"},
		{down, none, "unreadable", beside},
		{down, recent, "unreadable", beside},
	} {
		for arguments, want := range map[string]string{"": row.same, "others": row.not} {
			record := &journal.Record{Project: "p", JobID: "J", Last: &journal.Request{
				IsMessage: row.last != none, Arguments: journal.Hash(""), SentAt: time.Now().Add(-agentapi.Grace),
			}}
			if row.last == recent {
				record.Last.SentAt = time.Now()
			}
			request := Request{Wanted: journal.Wanted{Project: "p", Name: "n", Arguments: arguments, Prompt: "x"}}
			out := new(Sender).foresee(t.Context(), request, journal.Beside, record, func(_ context.Context, project, job string) (*agentapi.Job, error) {
				if project != "p" || job != "J" {
					t.Errorf("reads %s of %s", job, project)
				}
				status, _ := row.job.(agentapi.Status)
				err, _ := row.job.(error)
				return &agentapi.Job{ID: job, Status: status}, err
			})
			got := resultNames[out.Result]
			if out.Beside != nil {
				got += " beside it"
			}
			if got != want || (out.Err != nil) != (out.Result == Unreadable) || out.Record != record || out.Job != nil {
				t.Errorf("%v, %s, arguments %q: %s, %v, want %s", row.job, row.last, arguments, got, out.Err, want)
			}
		}
	}
}

var resultNames = map[Result]string{
	Accepted: "sent", Adopted: "adopted", AlreadySent: "already sent", NoEffect: "no effect", Unknown: "unknown", EarlierUnknown: "earlier unknown",
	Running: "running", OtherJob: "other job", Unreadable: "unreadable", JournalUnusable: "journal", BeyondLimit: "beyond limit",
	NotAdopted: "not adopted", Closed: "closed", Waiting: "waiting",
}

// service has one job, J, and starts new ones. It notes each request, and of a read whether the journal showed an adoption by then.
type service struct {
	status  string // of J: a status, or that of a response
	journal *journal.Journal

	mu       sync.Mutex
	requests []string
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	_, text, _ := strings.Cut(string(body), `"prompt":"`)
	prompt, _, _ := strings.Cut(text, `"`)
	switch isMessage := strings.HasSuffix(r.URL.Path, "/message"); {
	case isMessage:
		s.requests = append(s.requests, "message "+prompt)
		_, _ = io.WriteString(w, `{"id":"J","status":"active"}`)
	case r.Method == http.MethodPost:
		s.requests = append(s.requests, "create "+prompt)
		_, _ = io.WriteString(w, `{"id":"NEW","status":"active"}`)
	default:
		read := "read " + r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		if records, err := s.journal.All(r.Context()); err != nil || len(records) == 1 && records[0].Holder != "" {
			read += ", adopted"
		}
		s.requests = append(s.requests, read)
		if len(s.status) == 3 {
			http.Error(w, "{}", map[string]int{"404": 404, "503": 503}[s.status])
			return
		}
		_, _ = fmt.Fprintf(w, `{"id":"J","status":%q}`, s.status)
	}
}

// took are the requests since it was called last, and each that is repeated only once.
func (s *service) took() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := slices.Compact(s.requests)
	s.requests = nil
	return requests
}

// An apply does what its plan has foreseen, and sends nothing else. What it adopts is in the journal before the job is read, so that
// no Delete of the same apply frees the name.
func TestSend_foreseen(t *testing.T) {
	earlier := func(w journal.Wanted, end func(*journal.Call)) func(*testing.T, *journal.Journal) {
		return func(t *testing.T, j *journal.Journal) {
			c := j.Begin(t.Context(), w)
			_, _, err := c.Look(t.Context())
			if err := errors.Join(err, c.Claim(), c.BeforeBody()); err != nil {
				t.Fatal(err)
			}
			end(c)
		}
	}
	named := journal.Wanted{Project: "p", Name: "n", Prompt: "x"}
	accepted := func(job string) func(*journal.Call) { return func(c *journal.Call) { c.Accepted(job) } }
	created, others, toJ := named, named, named
	others.Arguments, toJ.JobID = "others", "J"
	hasX, hasOthers := earlier(created, accepted("J")), earlier(others, accepted("J"))
	hasY := earlier(journal.Wanted{Project: "p", Name: "n", Prompt: "y"}, accepted("J"))
	nothing := func(*testing.T, *journal.Journal) {}
	left := func(t *testing.T, j *journal.Journal) {
		hasX(t, j)
		if _, err := j.Free(t.Context(), journal.Object{Project: "p", Name: "n", JobID: "J"}, true); err != nil {
			t.Fatal(err)
		}
	}
	create, message := Request{Wanted: created}, Request{Wanted: toJ}
	with := func(r Request, edit func(*Request)) Request { edit(&r); return r }
	retry := with(create, func(r *Request) { r.RetryFailed = true })
	promised := func(job string) Request { return with(create, func(r *Request) { r.PlannedJob = job }) }
	const none = ""

	for name, row := range map[string]struct {
		before   func(*testing.T, *journal.Journal) // by the same run: it has not ended
		status   string
		request  Request
		plan     string
		result   string // of the apply; empty: as planned
		requests []string
	}{
		"no record":                     {nothing, none, create, "sent", "", []string{"create x"}},
		"the same request":              {hasX, "completed", create, "adopted", "", []string{"read J, adopted"}},
		"… whose job has failed":        {hasX, "failed", create, "adopted", "", []string{"read J, adopted"}},
		"… and is retried":              {hasX, "failed", retry, "adopted", "sent", []string{"read J, adopted", "create x"}},
		"… and is not retried, running": {hasX, "active", retry, "adopted", "", []string{"read J, adopted"}},
		"… whose job cannot be read":    {hasX, "503", create, "adopted", "unreadable", []string{"read J, adopted"}},
		"… as promised":                 {hasX, "completed", promised("J"), "adopted", "", []string{"read J, adopted"}},
		"… another one was promised":    {hasX, "completed", promised("K"), "adopted", "not adopted", nil},
		"one was promised, no record":   {nothing, none, promised("K"), "sent", "not adopted", nil},
		"left by this run":              {left, "completed", create, "adopted", "", []string{"read J, adopted"}},
		"another prompt, running":       {hasY, "active", create, "running", "", []string{"read J"}},
		"another prompt, completed":     {hasY, "completed", create, "sent beside it", "", []string{"read J", "create x"}},
		"another prompt, failed":        {hasY, "failed", create, "sent", "", []string{"read J", "create x"}},
		"another prompt, gone":          {hasY, "404", create, "sent", "", []string{"read J", "create x"}},
		"another prompt, unreadable":    {hasY, "503", create, "unreadable", "", []string{"read J"}},
		"other arguments, running":      {hasOthers, "active", create, "sent beside it", "", []string{"read J", "create x"}},
		"other arguments, unreadable":   {hasOthers, "503", create, "sent beside it", "", []string{"read J", "create x"}},
		"an unknown create":             {earlier(created, (*journal.Call).Unknown), none, create, "earlier unknown", "", nil},
		"a claim": {
			earlier(created, func(c *journal.Call) { time.AfterFunc(5*time.Second, func() { c.Accepted("J") }) }),
			"active", create, "waiting", "adopted", []string{"read J, adopted"},
		},
		"message":                      {earlier(created, accepted("J")), none, with(message, func(r *Request) { r.Prompt = "y" }), "sent", "", []string{"message y"}},
		"message: sent before":         {earlier(toJ, accepted("J")), "active", message, "already sent", "", []string{"read J"}},
		"message: unknown":             {earlier(toJ, (*journal.Call).Unknown), none, message, "earlier unknown", "", nil},
		"message: to another job":      {earlier(created, accepted("K")), none, message, "other job", "", nil},
		"message: its job is closed":   {nothing, none, with(message, func(r *Request) { r.PlannedJob = "J" }), "sent", "closed", nil},
		"message: … and it was sent":   {earlier(toJ, accepted("J")), "failed", with(message, func(r *Request) { r.PlannedJob = "J" }), "already sent", "", []string{"read J"}},
		"message: … and may have been": {earlier(toJ, (*journal.Call).Unknown), none, with(message, func(r *Request) { r.PlannedJob = "J" }), "earlier unknown", "", nil},
	} {
		for _, most := range []int64{1, 0} {
			t.Run(fmt.Sprint(name, ", limit ", most), func(t *testing.T) {
				dir := t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					open := func() *journal.Journal {
						process := &cli.Process{Run: "1", Self: cli.ProcessID{Start: "1"}, Ended: func(cli.ProcessID) bool { return false }}
						return journal.Open(process, journal.Options{Place: place.Place{Location: place.Location{Folder: dir}}, RequestTimeout: time.Second})
					}
					row.before(t, open())
					played := &service{status: row.status, journal: open()}
					wire := faultserver.New(t, played, faultserver.Options{InMemory: true})
					base, err := url.Parse(wire.URL)
					if err != nil {
						t.Fatal(err)
					}
					run := func() *Sender {
						client := agentapi.New(agentapi.Config{
							BaseURL: base, Key: agentapi.NewKey("key"), RequestTimeout: time.Second, MaxPollsPerSecond: 1, Dial: wire.Dial,
						})
						s := &Sender{Client: client, Journal: open()}
						for kind := range s.Limits.Limit {
							s.Limits.Limit[kind] = Limit{Setting: "a limit", Max: most}
						}
						return s
					}
					row.request.Body.Prompt = row.request.Prompt

					foreseen, err := run().Foresee(t.Context(), row.request)
					plan := resultNames[foreseen.Result]
					if foreseen.Beside != nil {
						plan += " beside it"
					}
					if plan != row.plan || err != nil {
						t.Errorf("a plan foresees %s, %v, want %s", plan, err, row.plan)
					}
					isPost := func(request string) bool { return !strings.HasPrefix(request, "read") }
					if requests := played.took(); slices.ContainsFunc(requests, isPost) {
						t.Errorf("a plan sends %q", requests)
					}

					result, requests := cmp.Or(row.result, row.plan), row.requests
					if most == 0 && strings.HasPrefix(result, "sent") { // what is adopted, and what stops, counts for no limit
						result, requests = "beyond limit", slices.DeleteFunc(slices.Clone(requests), isPost)
					}
					out := run().Begin(t.Context(), row.request).Send(t.Context())
					got := resultNames[out.Result]
					if out.Beside != nil {
						got += " beside it"
					}
					if got != result {
						t.Errorf("an apply: %s, %v, want %s", got, out.Err, result)
					}
					if diff := gocmp.Diff(requests, played.took(), gocmp.Transformer("none", func(r []string) string { return strings.Join(r, "; ") })); diff != "" {
						t.Errorf("requests (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

// Until an apply has run, only its plan knows that a Delete frees the name for a create. While another run's request may still get a
// response, a Delete waits, too.
func TestForesee_replaces(t *testing.T) {
	record := &journal.Record{Project: "p", Name: "n", JobID: "J", Last: &journal.Request{Arguments: journal.Hash("")}}
	for job, want := range map[string]map[journal.Verdict]string{
		"J": {journal.Adopt: "sent", journal.Beside: "sent", journal.Wait: "waiting"},
		"K": {journal.Adopt: "adopted", journal.Wait: "waiting"},
	} {
		for verdict, want := range want {
			out := new(Sender).foresee(t.Context(), Request{Replaces: job}, verdict, record, nil) // reads nothing
			if got := resultNames[out.Result]; got != want || out.Beside != nil {
				t.Errorf("%d, replaces %s: %s, want %s", verdict, job, got, want)
			}
		}
	}
}
