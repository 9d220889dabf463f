// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What each call sends, also where a server offers HTTP/2, whose client sends requests again by itself. A POST gets a
// connection of its own, on which nothing was sent before.
//
// Red without: DisableKeepAlives for POSTs ("Connection: close").
func TestExchange_C12_requests(t *testing.T) {
	t.Parallel()
	type request struct {
		Method, Target, Body string
		Header               http.Header
	}
	var got []request
	status := 200
	c := startServer(t, "/"+canary+"/", func(w http.ResponseWriter, r *http.Request) {
		if r.Proto != "HTTP/1.1" {
			t.Errorf("C11: %s", r.Proto)
		}
		body, _ := io.ReadAll(r.Body)
		got = append(got, request{r.Method, r.RequestURI, string(body), r.Header})
		w.WriteHeader(status)
		_, _ = io.WriteString(w, record)
	})
	calls := []func(context.Context) (*Job, error){
		func(ctx context.Context) (*Job, error) {
			return c.CreateJob(ctx, "pro-j_1", NewJob{Prompt: "hello"}, new(recorder))
		},
		func(ctx context.Context) (*Job, error) {
			return c.SendMessage(ctx, "pro-j_1", "job_1", "hello", new(recorder))
		},
		func(ctx context.Context) (*Job, error) { return c.ReadJob(ctx, "pro-j_1", "job_1") },
		func(ctx context.Context) (*Job, error) { return c.PollJob(ctx, "pro-j_1", "job_1") },
	}
	for _, call := range calls {
		if job, err := call(t.Context()); err != nil || job.ID != "job_1" {
			t.Fatalf("%v, %v", job, err)
		}
	}
	read := http.Header{
		"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}, "Authorization": {"Bearer " + canary}, "User-Agent": {"test/1"},
	}
	posted := read.Clone()
	posted.Set("Connection", "close")
	posted.Set("Content-Length", "18")
	posted.Set("Content-Type", "application/json")
	jobs := "/" + canary + "/v2/agent/pro-j_1/job"
	want := []request{
		{"POST", jobs, `{"prompt":"hello"}`, posted},
		{"POST", jobs + "/job_1/message", `{"prompt":"hello"}`, posted},
		{"GET", jobs + "/job_1", "", read},
		{"GET", jobs + "/job_1", "", read},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	// A failure names its request: a wrong base URL or project shows in it.
	status = 404
	for i, call := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // else a GET would be repeated for longer
		_, err := call(ctx)
		cancel()
		failure, _ := errors.AsType[*Error](err)
		if named := want[i].Method + " https://" + c.config.BaseURL.Host + strings.Replace(want[i].Target, canary, masked, 1); failure == nil || failure.Endpoint != named {
			t.Errorf("%v, of %q, want %q", err, failure.Endpoint, named)
		}
	}
}

func TestCheckIDs(t *testing.T) {
	t.Parallel()
	f := &fakeService{answers: []answer{accepted}}
	c := newFakeClient(t, f)
	for _, id := range []string{
		"", ".", "..", "a..b", "a/b", "a b", "a%2fb", "a?b", "a#b", "a\\b", "a\x00b", "a\nb",
		"a\x1b[2Jb", "x; id", "$(id)", "`id`", "a&b", "a|b", "a~b", "a:b", "a@b", "a*b", "a'b", "a(b)", "a,b", "a=b", "a!b", "a+b", "a\u009bb", "a\u202eb", "jöb", "a\ufffdb", strings.Repeat("a", 257),
	} {
		for name, call := range map[string]func() (*Job, error){
			"create":              func() (*Job, error) { return c.CreateJob(t.Context(), id, NewJob{Prompt: "x"}, new(recorder)) },
			"message, by project": func() (*Job, error) { return c.SendMessage(t.Context(), id, "job_1", "x", new(recorder)) },
			"message, by job":     func() (*Job, error) { return c.SendMessage(t.Context(), "p", id, "x", new(recorder)) },
			"get, by project":     func() (*Job, error) { return c.ReadJob(t.Context(), id, "job_1") },
			"get, by job":         func() (*Job, error) { return c.ReadJob(t.Context(), "p", id) },
			"poll, by job":        func() (*Job, error) { return c.PollJob(t.Context(), "p", id) },
		} {
			job, err := call()
			failure, _ := errors.AsType[*Error](err)
			if job != nil || failure == nil || failure.Endpoint != "" || !errors.Is(err, ErrNotSent) || !errors.Is(err, errBadID) {
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
	failure := &Error{Op: OpMessage, StatusCode: 599, Err: errors.New("a\x1b[2J"), Detail: "words"}
	const want = `send message: the service responded with 599: a\u001b[2J: words`
	if got := failure.Error(); got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}
