// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	c := newClient(t, "https://service.invalid")
	create := apiCall{op: OpCreate, projectID: "p"}
	message := apiCall{op: OpMessage, projectID: "p", jobID: "job_1"}
	get := apiCall{op: OpGet, projectID: "p", jobID: "job_1"}
	cut := io.ErrUnexpectedEOF
	html, xhtml := http.Header{"Content-Type": {"text/html; charset=utf-8"}}, http.Header{"Content-Type": {"application/xhtml+xml"}}
	for name, tc := range map[string]struct {
		call  apiCall
		got   response
		err   error
		class error // nil: the job
		is    error
	}{
		"message, another job":  {message, response{status: 200, body: []byte(`{"id":"job_2"}`)}, nil, ErrUnknownOutcome, errWrongJob},
		"201, half sent":        {create, response{status: 201, isBegun: true, isCut: true, body: []byte(record)}, nil, nil, nil},
		"201, half sent, no id": {create, response{status: 201, isBegun: true, isCut: true}, nil, ErrUnknownOutcome, errNoObject},
		"C05 HTML":              {create, response{status: 200, body: []byte("<html>")}, nil, ErrUnknownOutcome, ErrWebPage},
		"101":                   {create, response{status: 101, body: []byte(record)}, nil, ErrUnknownOutcome, nil},
		"refused, body cut":     {create, response{status: 400, body: []byte(`{"err`)}, cut, ErrRefused, nil},

		"GET certificate":    {get, response{}, ErrCertificate, ErrRefused, ErrCertificate},
		"GET 404 unlabelled": {get, response{status: 404, body: []byte("\n<!DOCTYPE html>")}, nil, ErrRefused, ErrWebPage},
		"GET 404 type alone": {get, response{status: 404, header: xhtml}, nil, ErrRefused, ErrWebPage},
		"GET 200 labelled":   {get, response{status: 200, header: html, body: []byte(" " + record)}, nil, nil, nil},
		"GET 200, no id":     {get, response{status: 200, body: []byte(`{"status":"active"}`)}, nil, ErrUnavailable, errNoID},
		"GET wrong id":       {get, response{status: 200, body: []byte(`{"id":"JOB_1","status":"completed"}`)}, nil, ErrRefused, errWrongJob},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			classify := c.classifyPost
			if tc.call.op == OpGet {
				classify = c.classifyGet
			}
			job, failure := classify(tc.call, &tc.got, tc.err)
			wantClass(t, job, failure, tc.class, tc.got.status, tc.is)
		})
	}
}

// wantClass asserts what a response was classified as; class nil is the job.
func wantClass(t *testing.T, job *Job, err, class error, status int, is error) {
	t.Helper()
	failure, _ := errors.AsType[*Error](err)
	if class == nil {
		if failure != nil || job == nil || job.ID != "job_1" {
			t.Errorf("%v, %v, want the job", job, failure)
		}
		return
	}
	if job != nil || failure == nil || !errors.Is(failure, class) || failure.StatusCode != status || is != nil && !errors.Is(failure, is) {
		t.Errorf("%v, %+v, want class %v, status %d, %v", job, failure, class, status, is)
	}
}

// The class of a POST's failure follows from the status alone, and so does what the refusal of a message speaks of. (C04)
// Of a GET, what is down may come back, and a refusal counts once it persists.
func TestClassify_everyStatus(t *testing.T) {
	t.Parallel()
	c := newClient(t, "https://service.invalid")
	for status := 100; status < 600; status++ {
		for form, body := range map[string]string{"nothing": "", "JSON": `{"error":"no"}`, "HTML": "<!DOCTYPE html>", "truncated": `{"id":`} {
			_, failure := c.classifyPost(apiCall{op: OpMessage}, &response{isBegun: true, status: status, body: []byte(body)}, nil)
			if failure == nil || failure.StatusCode != status {
				t.Fatalf("%d %s: %v", status, form, failure)
			}
			mayMean := status/100 == 4 && form != "HTML" &&
				!slices.Contains([]int{401, 402, 403, 404, 407, 408, 413, 414, 415, 421, 425, 426, 429, 431, 499}, status)
			if got := MayMeanClosed(failure); got != mayMean {
				t.Errorf("%d %s: the refusal may mean that the job is closed: %t, want %t", status, form, got, mayMean)
			}
			_, read := c.classifyGet(apiCall{op: OpGet}, &response{status: status, body: []byte(body)}, nil)
			isDown := status >= 500 || slices.Contains([]int{408, 425, 429}, status) || status/100 == 2 && (form == "nothing" || form == "truncated")
			isGone := (status == 404 || status == 410) && form != "HTML"
			if errors.Is(read, ErrUnavailable) != isDown || errors.Is(read, ErrRefused) == isDown || errors.Is(read, ErrNotFound) != isGone || MayMeanClosed(read) {
				t.Errorf("%d %s to a GET: %v, %v, may mean closed: %t", status, form, read.Class, read, MayMeanClosed(read))
			}
			handled := status == 303 || status == 304 || status == 408 || status == 499 // perhaps
			for target, want := range map[error]bool{
				ErrRefused: status >= 300 && status < 500 && !handled, ErrUnknownOutcome: status < 300 || status >= 500 || handled,
				ErrNotFound: status == 404 && form != "HTML", ErrWebPage: form == "HTML" && status/100 != 3, ErrNotSent: false, ErrUnavailable: false,
			} {
				if errors.Is(failure, target) != want {
					t.Errorf("%d %s: %q is %t", status, form, target, !want)
				}
			}
		}
	}
}

// The service's error message, in all its forms. (C08)
func TestNewError_detail(t *testing.T) {
	t.Parallel()
	c := newClient(t, "https://service.invalid")
	for name, tc := range map[string]struct{ kind, body, want string }{
		"error and message": {"application/json", `{"message":"second","error":"first"}`, "first"},
		"error a flag":      {"application/json", `{"error":true,"message":"no prompt"}`, "no prompt"},
		"nested":            {"application/json", `{"error":{"code":7,"message":"no prompt"}}`, "no prompt"},
		"JSON string":       {"application/json", `"no prompt"`, `"no prompt"`},
		"broken UTF-8":      {"text/plain", " a\xffb\n", `a\xffb`},
		"HTML":              {"text/html; charset=utf-8", "no prompt", ""},
		"HTML unlabelled":   {"", " \n<!doctype html><h1>no", ""},
		"error empty":       {"application/json", `{"error":" ","message":"no prompt\n"}`, "no prompt"},
		"a record":          {"application/json", `{"id":"job_1","error":{"id":"x"}}`, ""},
	} {
		header := http.Header{"Content-Type": {tc.kind}, "Retry-After": {"7"}}
		failure := c.newError(apiCall{op: OpCreate}, ErrRefused, &response{status: 400, header: header, body: []byte(tc.body)}, nil)
		if failure.Detail != tc.want || failure.RetryAfter != 7*time.Second || errors.Is(failure, ErrWebPage) != strings.HasPrefix(name, "HTML") {
			t.Errorf("%s: %q, %v after %v; want %q", name, failure.Detail, failure.Err, failure.RetryAfter, tc.want)
		}
	}
}
