// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExchange_requests(t *testing.T) {
	t.Parallel()
	type seen struct {
		Method, Target, Body string
		Header               http.Header
	}
	var got []seen
	s := startService(t, nil, func(conn net.Conn, r *http.Request, _ int) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, seen{r.Method, r.RequestURI, string(body), r.Header})
		write(conn, 200, record)
	})
	c := newClient(t, s.url+"/prefix/")
	for _, call := range []func() (*Job, error){
		func() (*Job, error) { return c.CreateJob(t.Context(), "pro-j:1", "hello") },
		func() (*Job, error) { return c.SendMessage(t.Context(), "pro-j:1", "job_1", "hello") },
		func() (*Job, error) { return c.GetJob(t.Context(), "pro-j:1", "job_1") },
		func() (*Job, error) { return c.PollJob(t.Context(), "pro-j:1", "job_1") },
	} {
		if job, err := call(); err != nil || job.ID != "job_1" {
			t.Fatalf("%v, %v", job, err)
		}
	}
	posted := http.Header{
		"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}, "Authorization": {"Bearer " + canary},
		"Connection": {"close"}, "Content-Length": {"18"}, "Content-Type": {"application/json"}, "User-Agent": {"test/1"},
	}
	gotten := http.Header{
		"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}, "Authorization": {"Bearer " + canary}, "User-Agent": {"test/1"},
	}
	want := []seen{
		{"POST", "/prefix/v2/agent/pro-j:1/job", `{"prompt":"hello"}`, posted},
		{"POST", "/prefix/v2/agent/pro-j:1/job/job_1/message", `{"prompt":"hello"}`, posted},
		{"GET", "/prefix/v2/agent/pro-j:1/job/job_1", "", gotten},
		{"GET", "/prefix/v2/agent/pro-j:1/job/job_1", "", gotten},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	s.wantPosts(t, 2)
}

func TestCheckIDs(t *testing.T) {
	t.Parallel()
	f := &fake{answer: func(int, *http.Request) (int, http.Header, string) { return 200, nil, record }}
	c := newFakeClient(t, f)
	for _, id := range []string{"", ".", "..", "a/b", "a..b", "a%2fb", "a?b", "a#b", "a b", "a\nb", "ä", "a\\b", strings.Repeat("a", 257)} {
		for name, call := range map[string]func() (*Job, error){
			"create":              func() (*Job, error) { return c.CreateJob(t.Context(), id, "x") },
			"message, by project": func() (*Job, error) { return c.SendMessage(t.Context(), id, "job_1", "x") },
			"message, by job":     func() (*Job, error) { return c.SendMessage(t.Context(), "p", id, "x") },
			"get, by project":     func() (*Job, error) { return c.GetJob(t.Context(), id, "job_1") },
			"get, by job":         func() (*Job, error) { return c.GetJob(t.Context(), "p", id) },
			"poll, by job":        func() (*Job, error) { return c.PollJob(t.Context(), "p", id) },
		} {
			job, err := call()
			var failure *Error
			if job != nil || !errors.As(err, &failure) || !errors.Is(err, ErrNotSent) || !errors.Is(err, errBadID) {
				t.Errorf("%s with id %q: %v, %v, want errBadID", name, id, job, err)
			}
		}
	}
	if f.dials != 0 {
		t.Errorf("%d requests were made, want none", f.dials)
	}
}

func TestError_text(t *testing.T) {
	t.Parallel()
	for want, failure := range map[string]*Error{
		"create job": {Op: OpCreate},
		"get job: the service answered 404 Not Found: no such job": {Op: OpGet, StatusCode: 404, Detail: "no such job"},
		"send message: the service answered 599: cause: words":     {Op: OpMessage, StatusCode: 599, Err: errors.New("cause"), Detail: "words"},
		`create job: a\u001b[2J`:                                   {Op: OpCreate, Err: errors.New("a\x1b[2J")},
		"create job: " + strings.Repeat("x", 511) + "…":            {Op: OpCreate, Err: errors.New(strings.Repeat("x", 1000))},
	} {
		if got := failure.Error(); got != want {
			t.Errorf("Error() = %q, want %q", got, want)
		}
	}
}
