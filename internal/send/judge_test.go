// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package send

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/place"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// short is what an outcome is.
func short(out Outcome) string {
	text := map[Result]string{
		MaySend: "sends", Accepted: "sent", Adopted: "adopted", AlreadySent: "already sent", NoEffect: "no effect", Unknown: "unknown", EarlierUnknown: "earlier unknown",
		Running: "running", OtherJob: "other job", Unreadable: "unreadable", JournalUnusable: "journal", BeyondLimit: "beyond limit",
		PlanOutdated: "plan outdated", Waiting: "waiting",
	}[out.Result]
	if out.Beside != nil {
		text += " beside it"
	}
	return text
}

// The table is the protocol: see docs/guides/reliability.md.
func TestJudge(t *testing.T) {
	const lastID = "last"
	type edit = func(*journal.Record)
	// has is the record of a job that was sent the prompt x, and is running.
	has := func(job, prompt string, edits ...edit) *journal.Record {
		r := &journal.Record{
			Project: "p", Name: "n", JobID: job, Last: &journal.Entry{ID: lastID, Prompt: journal.Hash(lastID, prompt), Arguments: journal.Hash("")},
		}
		for _, edit := range edits {
			edit(r)
		}
		return r
	}
	released := func(r *journal.Record) { r.Fate = journal.Release }
	unknown := func(r *journal.Record) { r.Last.Unknown = true }
	noted := func(r *journal.Record) { r.Last.Prompt = journal.PromptHash(r.JobID, "x") } // as a Delete notes it
	isMessage := func(r *journal.Record) { r.Last.Recipient = r.JobID }
	empty := func(r *journal.Record) { r.JobID, r.Last = "", nil }
	claimed := func(r *journal.Record) { r.Claim = new(journal.Entry) }
	kept := func(r *journal.Record) { r.Fate, r.FateBy = journal.Keep, "other" }
	left := func(by cli.Run) edit { return func(r *journal.Record) { r.Fate, r.FateBy = journal.Leave, by } }

	newJob := Request{Wanted: journal.Wanted{Project: "p", Name: "n", Prompt: "x"}}
	changed := func(r Request, edit func(*Request)) Request { edit(&r); return r }
	sameJob := changed(newJob, func(r *Request) { r.Recipient = "J" })
	triggered := changed(newJob, func(r *Request) { r.Arguments = "2" })
	planned := func(r Request) Request { r.Prompt, r.IsPromptUnknown = "", true; return r }
	replaces := func(job string) Request { return changed(newJob, func(r *Request) { r.Replaces = job }) }

	for _, row := range []struct {
		name    string
		record  *journal.Record
		request Request
		forget  string
		want    string
	}{
		// Creates, by the rows of the table.
		{"nothing was accepted", has("", "", empty), newJob, "", "sends"},
		{"released", has("J", "x", released), newJob, "", "sends"},
		{"accepted, the same request", has("J", "x"), newJob, "", "adopted"},
		{"… whose prompt the plan does not know", has("J", "x"), planned(newJob), "", "adopted"},
		{"… after an unknown message with its prompt", has("J", "x", isMessage, unknown), newJob, "", "adopted"},
		{"… noted by a Delete", has("J", "", noted), newJob, "", "adopted"},
		{"accepted, another prompt", has("J", "y"), newJob, "", "running"},
		{"… noted by a Delete", has("J", "", noted), changed(newJob, func(r *Request) { r.Prompt = "y" }), "", "running"},
		{"… another request was forgotten", has("J", "y"), newJob, "other", "running"},
		{"… of an unknown message", has("J", "y", isMessage, unknown), newJob, "", "running"},
		{"accepted, forgotten", has("J", "x"), newJob, lastID, "sends"},
		{"accepted, other triggers", has("J", "x"), triggered, "", "sends beside it"},
		{"… whose prompt the plan does not know", has("J", "x"), planned(triggered), "", "sends beside it"},
		{"pending", has("", "", empty, claimed), newJob, "", "waiting"},
		{"… over a job that was forgotten", has("J", "x", claimed), newJob, lastID, "waiting"},
		{"an unknown create", has("", "x", unknown), newJob, "", "earlier unknown"},
		{"… of other triggers", has("", "x", unknown), triggered, "", "earlier unknown"},
		{"… that was forgotten", has("", "x", unknown), newJob, lastID, "sends"},
		{"left by this run", has("J", "x", left("me")), newJob, "", "adopted"},
		{"… whose prompt the plan does not know", has("J", "x", left("me")), planned(newJob), "", "adopted"},
		{"… and another prompt", has("J", "y", left("me")), newJob, "", "running"},
		{"… and other triggers", has("J", "x", left("me")), triggered, "", "sends beside it"},
		{"… and forgotten", has("J", "x", left("me")), newJob, lastID, "sends"},
		{"… and nothing was accepted", has("", "", empty, left("me")), newJob, "", "sends"},
		{"… and kept, another prompt", has("J", "y", kept), newJob, "", "running"},
		{"left by another run", has("J", "x", left("other")), newJob, "", "sends"},
		{"… and kept", has("J", "x", kept), newJob, "", "adopted"},
		// Until an apply has run, only its plan knows that a Delete frees the name for a create.
		{"replaces the job", has("J", "x"), replaces("J"), "", "sends"},
		{"… and has another prompt", has("J", "y"), replaces("J"), "", "sends"},
		{"… and another run's response is awaited", has("J", "x", claimed), replaces("J"), "", "waiting"},
		{"replaces another job", has("J", "x"), replaces("K"), "", "adopted"},

		// Messages to J.
		{"message: nothing was accepted", has("", "", empty), sameJob, "", "sends"},
		{"message: released, and its run was killed", has("J", "x", released, isMessage, unknown), sameJob, "", "earlier unknown"},
		{"message: … with another prompt", has("J", "y", released), sameJob, "", "sends"},
		{"message: accepted", has("J", "x", isMessage), sameJob, "", "already sent"},
		{"message: noted by a Delete", has("J", "", noted), sameJob, "", "already sent"},
		{"message: unknown", has("J", "x", isMessage, unknown), sameJob, "", "earlier unknown"},
		{"N13 message: pending", has("J", "y", claimed), sameJob, "", "waiting"},
		{"message: another prompt", has("J", "y", isMessage), sameJob, "", "sends"},
		{"message: another prompt, unknown", has("J", "y", isMessage, unknown), sameJob, "", "sends"},
		{"message: the plan does not know the prompt", has("J", "x", isMessage), planned(sameJob), "", "sends"},
		{"message: another job", has("K", "x"), sameJob, "", "other job"},
		{"message: … that was forgotten", has("K", "x"), sameJob, lastID, "sends"},
		{"message: … released", has("K", "x", released), sameJob, "", "sends"},
		{"message: an unknown create", has("", "x", unknown), sameJob, "", "other job"},
	} {
		process := &cli.Process{Run: "me"}
		s := Sender{Journal: journal.Open(process, journal.Options{Forget: []string{row.forget}})}
		out := s.judge(t.Context(), row.request, row.record, func(_ context.Context, project, job string) (*agentapi.Job, error) {
			if project != "p" || job != "J" {
				t.Errorf("reads %s of %s", job, project)
			}
			return &agentapi.Job{ID: job, Status: agentapi.StatusActive}, nil
		})
		if got := short(out); got != row.want || out.Record != row.record || out.Job != nil {
			t.Errorf("%s: %s, %+v, want %s", row.name, got, out, row.want)
		}
		if isPerhapsSent := row.want == "earlier unknown" && row.request.Recipient == "J"; isPerhapsSent != (out.JobID != "") {
			t.Errorf("%s: the state is told of %q", row.name, out.JobID)
		}
	}
}

// What the job of the record decides of a create with another prompt or other arguments: whether it stops, or what a plan says.
func TestJudge_beside(t *testing.T) {
	const none, message, recent = "", "message", "recent message"
	const beside = "sends beside it"
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
		{agentapi.StatusCompleted, none, beside, "sends"},
		{agentapi.StatusFailed, none, "sends", "sends"},
		{agentapi.StatusArchived, none, "sends", "sends"},
		{agentapi.StatusCompleted, message, beside, "sends"},
		{agentapi.StatusCompleted, recent, "running", "sends"}, // the status may be that of before the message
		{agentapi.StatusFailed, recent, "running", "sends"},
		{agentapi.StatusArchived, recent, "running", "sends"},
		{gone, none, "sends", "sends"},
		{gone, recent, "sends", "sends"},
		{down, none, "unreadable", beside},
		{down, recent, "unreadable", beside},
	} {
		for arguments, want := range map[string]string{"": row.same, "others": row.not} {
			record := &journal.Record{JobID: "J", Last: &journal.Entry{
				Arguments: journal.Hash(""), SentAt: time.Now().Add(-agentapi.StaleFor),
			}}
			if row.last != none {
				record.Last.Recipient = "J"
			}
			if row.last == recent {
				record.Last.SentAt = time.Now()
			}
			out, job := Outcome{Record: record}, &agentapi.Job{ID: "J"}
			job.Status, _ = row.job.(agentapi.Status)
			err, _ := row.job.(error)
			judgeBeside(Request{Wanted: journal.Wanted{Arguments: arguments}}, job, err, &out)
			got := short(out)
			if got != want || (out.Err != nil) != (out.Result == Unreadable) {
				t.Errorf("%v, %s, arguments %q: %s, %v, want %s", row.job, row.last, arguments, got, out.Err, want)
			}
		}
	}
}

// service has one job, J, and starts new ones. It notes each request, and of a read whether the journal showed an adoption by then.
type service struct {
	status  string // of J: a status, or that of a response
	journal *journal.Journal
	holder  string // of J before the request

	requests []string
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct{ Prompt string }
	_ = json.NewDecoder(r.Body).Decode(&body)
	code, _ := strconv.Atoi(s.status)
	switch isMessage := strings.HasSuffix(r.URL.Path, "/message"); {
	case code != 0 && r.Method == http.MethodPost:
		s.status = ""
		w.WriteHeader(code)
	case isMessage:
		s.requests = append(s.requests, "message "+body.Prompt)
		_, _ = io.WriteString(w, `{"id":"J","status":"active"}`)
	case r.Method == http.MethodPost:
		s.requests = append(s.requests, "create "+body.Prompt)
		_, _ = io.WriteString(w, `{"id":"NEW","status":"active"}`)
	default:
		read := "read " + path.Base(r.URL.Path)
		if records, err := s.journal.All(r.Context()); err != nil || len(records) == 1 && records[0].Holder != s.holder {
			read += ", adopted"
		}
		s.requests = append(s.requests, read)
		w.WriteHeader(cmp.Or(code, http.StatusOK))
		_, _ = fmt.Fprintf(w, `{"id":"J","status":%q}`, s.status)
	}
}

// took are the requests since it was called last, in one line, and each that is repeated only once.
func (s *service) took() string {
	requests := slices.CompactFunc(s.requests, func(a, b string) bool { return a == b && strings.HasPrefix(a, "read") })
	s.requests = nil
	return strings.Join(requests, "; ")
}

// An apply does what its plan has foreseen, and sends nothing else. What it adopts is in the journal before the job is read, so that
// no Delete of the same apply frees the name.
func TestSend_foreseen(t *testing.T) {
	earlier := func(w journal.Wanted, end func(*journal.Call)) func(*testing.T, *journal.Journal) {
		return func(t *testing.T, j *journal.Journal) {
			c := j.Begin(t.Context(), w)
			_, err := c.Look(t.Context())
			if err := errors.Join(err, c.Claim(), c.BeforeBody()); err != nil {
				t.Fatal(err)
			}
			end(c)
		}
	}
	named := journal.Wanted{Project: "p", Name: "n", Prompt: "x"}
	accepted := func(job string) func(*journal.Call) { return func(c *journal.Call) { c.Accepted(job) } }
	created, toJ := named, named
	toJ.Recipient = "J"
	hasX := earlier(created, accepted("J"))
	hasY := earlier(journal.Wanted{Project: "p", Name: "n", Prompt: "y"}, accepted("J"))
	nothing := func(*testing.T, *journal.Journal) {}
	left := func(t *testing.T, j *journal.Journal) {
		hasX(t, j)
		if _, err := j.Remove(t.Context(), journal.Object{Project: "p", Name: "n", JobID: "J"}, journal.Leave); err != nil {
			t.Fatal(err)
		}
	}
	create, message := Request{Wanted: created}, Request{Wanted: toJ}
	with := func(r Request, edit func(*Request)) Request { edit(&r); return r }
	retry := with(create, func(r *Request) { r.RetryFailed = true })
	closed := with(message, func(r *Request) { r.PlannedJob = "J" })
	promised := func(job string) Request { return with(create, func(r *Request) { r.PlannedJob = job }) }
	const none = ""
	ofPosts := regexp.MustCompile(`(; )?(create|message) \w+$`)

	for name, row := range map[string]struct {
		before   func(*testing.T, *journal.Journal) // by the same run: it has not ended
		status   string
		request  Request
		plan     string
		result   string // of the apply; empty: as planned
		requests string
	}{
		"no record, after a 429":      {nothing, "429", create, "sends", "", "create x"},
		"no record":                   {nothing, none, create, "sends", "", "create x"},
		"no record, refused":          {nothing, "400", create, "sends", "no effect", none},
		"no record, no response":      {nothing, "500", create, "sends", "unknown", none},
		"the same request":            {hasX, "completed", create, "adopted", "", "read J, adopted"},
		"… whose job has failed":      {hasX, "failed", create, "adopted", "", "read J, adopted"},
		"… and is retried":            {hasX, "failed", retry, "adopted", "sent", "read J, adopted; create x"},
		"… whose job cannot be read":  {hasX, "503", create, "adopted", "unreadable", "read J, adopted"},
		"… as promised":               {hasX, "completed", promised("J"), "adopted", "", "read J, adopted"},
		"… another one was promised":  {hasX, "completed", promised("K"), "adopted", "plan outdated", none},
		"one was promised, no record": {nothing, none, promised("K"), "sends", "plan outdated", none},
		"left by this run":            {left, "completed", create, "adopted", "", "read J, adopted"},
		"another prompt, running":     {hasY, "active", create, "running", "", "read J"},
		"another prompt, completed":   {hasY, "completed", create, "sends beside it", "", "read J; create x"},
		"an unknown create":           {earlier(created, (*journal.Call).Unknown), none, create, "earlier unknown", "", none},
		"a claim": {
			earlier(created, func(c *journal.Call) { time.AfterFunc(5*time.Second, func() { c.Accepted("J") }) }),
			"active", create, "waiting", "adopted", "read J, adopted",
		},
		"message":                      {earlier(created, accepted("J")), none, with(message, func(r *Request) { r.Prompt = "y" }), "sends", "", "message y"},
		"message: sent before":         {earlier(toJ, accepted("J")), "active", message, "already sent", "", "read J"},
		"message: its job is closed":   {nothing, none, closed, "sends", "plan outdated", none},
		"message: … and it was sent":   {earlier(toJ, accepted("J")), "failed", closed, "already sent", "", "read J"},
		"message: … and may have been": {earlier(toJ, (*journal.Call).Unknown), none, closed, "earlier unknown", "", none},
	} {
		for _, most := range []int64{1, 0} {
			t.Run(fmt.Sprint(name, ", limit ", most), func(t *testing.T) {
				dir := t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					location := place.Location{Folder: dir}
					row.before(t, open(location))
					played := &service{status: row.status, journal: open(location)}
					if records, err := played.journal.All(t.Context()); err == nil && len(records) > 0 {
						played.holder = records[0].Holder
					}
					wire := faultserver.New(t, played)
					run := func() *Sender {
						limit := Limit{Setting: "a limit", Max: most}
						return &Sender{Client: dialing(wire.Dial), Journal: open(location), Limits: Limits{ByKind: [2]Limit{limit, limit}}}
					}
					row.request.Body.Prompt = row.request.Prompt

					foreseen, err := run().Foresee(t.Context(), row.request)
					if plan := short(foreseen); plan != row.plan || err != nil {
						t.Errorf("a plan foresees %s, %v, want %s", plan, err, row.plan)
					}
					if requests := played.took(); strings.Contains(requests, "create") || strings.Contains(requests, "message") {
						t.Errorf("a plan sends: %s", requests)
					}

					result, requests := cmp.Or(row.result, strings.Replace(row.plan, "sends", "sent", 1)), row.requests
					if isSent := strings.HasPrefix(result, "sent") || result == "no effect" || result == "unknown"; isSent && most == 0 { // what is adopted, and what stops, counts for no limit
						result, requests = "beyond limit", ofPosts.ReplaceAllString(requests, "")
					}
					out := run().Begin(t.Context(), row.request).Send(t.Context())
					if got := short(out); got != result {
						t.Errorf("an apply: %s, %v, want %s", got, out.Err, result)
					}
					if records, err := played.journal.All(t.Context()); err != nil || len(records) > 0 && records[0].Claim != nil {
						t.Errorf("a claim is left: %+v, %v", records, err)
					}
					if got := played.took(); got != requests {
						t.Errorf("requests %q, want %q", got, requests)
					}
				})
			})
		}
	}
}
