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

// calls are what a client does with a project and a job.
func calls(c *Client, project, job string) []func(context.Context) (*Job, error) {
	return []func(context.Context) (*Job, error){
		func(ctx context.Context) (*Job, error) {
			return c.CreateJob(ctx, project, PostBody{Prompt: "hello"}, new(recorder))
		},
		func(ctx context.Context) (*Job, error) {
			return c.SendMessage(ctx, project, job, "hello", new(recorder))
		},
		func(ctx context.Context) (*Job, error) { return c.ReadJob(ctx, project, job) },
		func(ctx context.Context) (*Job, error) { return c.PollJob(ctx, project, job) },
	}
}

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
	for _, call := range calls(c, "pro-j_1", "job_1") {
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
	for i, call := range calls(c, "pro-j_1", "job_1") {
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
	bad := []string{"", ".", "..", "a..b", "a%2fb", "$(id)", "a\u202eb", "a\ufffdb", strings.Repeat("a", 257)}
	for r := range rune(0x100) { // the allowed ones: TestDecodeJob
		if !strings.ContainsRune("-._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", r) {
			bad = append(bad, "a"+string(r)+"b")
		}
	}
	for _, id := range bad {
		for i, call := range append(calls(c, "p", id)[1:], calls(c, id, "job_1")...) {
			job, err := call(t.Context())
			failure, _ := errors.AsType[*Error](err)
			if job != nil || failure == nil || failure.Endpoint != "" || !errors.Is(err, ErrNotSent) || !errors.Is(err, errBadID) {
				t.Errorf("call %d with id %q: %v, %v, want errBadID", i, id, job, err)
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
