// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestJudgePost(t *testing.T) {
	t.Parallel()
	c := newClient(t, "https://service.invalid")
	create := request{op: OpCreate, projectID: "p"}
	message := request{op: OpMessage, projectID: "p", jobID: "job_1"}
	cut := io.ErrUnexpectedEOF
	for name, tc := range map[string]struct {
		request request
		got     answer
		err     error
		class   Class // 0: accepted
		is      error
	}{
		"no connection":             {create, answer{}, cut, NotSent, cut},
		"no answer":                 {create, answer{reached: true}, cut, UnknownOutcome, cut},
		"201":                       {create, answer{status: 201, body: []byte(record)}, nil, 0, nil},
		"C07 200":                   {create, answer{status: 200, body: []byte(record)}, nil, 0, nil},
		"202":                       {create, answer{status: 202, body: []byte(record)}, nil, 0, nil},
		"299":                       {create, answer{status: 299, body: []byte(record)}, nil, 0, nil},
		"message 200":               {message, answer{status: 200, body: []byte(record)}, nil, 0, nil},
		"message, another job":      {message, answer{status: 200, body: []byte(`{"id":"job_2"}`)}, nil, UnknownOutcome, ErrWrongJob},
		"201 cut short":             {create, answer{status: 201, body: []byte(`{"id":`)}, cut, UnknownOutcome, cut},
		"201 whole, but an error":   {create, answer{status: 201, body: []byte(record)}, cut, UnknownOutcome, cut},
		"C05 truncated":             {create, answer{status: 201, body: []byte(record[:20])}, nil, UnknownOutcome, nil},
		"C05 empty":                 {create, answer{status: 201}, nil, UnknownOutcome, errNoObject},
		"C05 204":                   {create, answer{status: 204}, nil, UnknownOutcome, errNoObject},
		"C05 no id":                 {create, answer{status: 201, body: []byte(`{"status":"active"}`)}, nil, UnknownOutcome, errNoID},
		"C05 id empty":              {create, answer{status: 201, body: []byte(`{"id":""}`)}, nil, UnknownOutcome, errNoID},
		"C05 id not a string":       {create, answer{status: 201, body: []byte(`{"id":7}`)}, nil, UnknownOutcome, errNoID},
		"C05 id twice":              {create, answer{status: 201, body: []byte(`{"id":"a","id":"b"}`)}, nil, UnknownOutcome, errDuplicate},
		"C05 trailing data":         {create, answer{status: 201, body: []byte(record + record)}, nil, UnknownOutcome, errTrailing},
		"C05 HTML":                  {create, answer{status: 200, body: []byte("<html>")}, nil, UnknownOutcome, ErrWebPage},
		"C06 id with slash":         {create, answer{status: 201, body: []byte(`{"id":"a/../b"}`)}, nil, UnknownOutcome, errNoID},
		"C06 id with the key":       {create, answer{status: 201, body: []byte(`{"id":"a` + canary + `"}`)}, nil, UnknownOutcome, errNoID},
		"101":                       {create, answer{status: 101}, nil, UnknownOutcome, nil},
		"refused, body cut":         {create, answer{status: 400, body: []byte(`{"err`)}, cut, Refused, nil},
		"refused, record in it":     {create, answer{status: 409, body: []byte(record)}, nil, Refused, nil},
		"error with a whole record": {create, answer{status: 500, body: []byte(record)}, nil, UnknownOutcome, nil},
		"too large":                 {create, answer{status: 201}, errTooLarge, UnknownOutcome, errTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.got.header = http.Header{}
			job, failure := c.judgePost(tc.request, &tc.got, tc.err)
			if tc.class == 0 {
				if failure != nil || job == nil || job.ID != "job_1" {
					t.Fatalf("judgePost = %v, %v, want the job", job, failure)
				}
				return
			}
			if job != nil || failure == nil {
				t.Fatalf("judgePost = %v, %v, want class %d", job, failure, tc.class)
			}
			if strings.Contains(failure.Error(), canary) {
				t.Errorf("the key is in %q", failure)
			}
			if failure.Class != tc.class || failure.StatusCode != tc.got.status || tc.is != nil && !errors.Is(failure, tc.is) {
				t.Errorf("class %d, status %d, %v; want class %d, status %d, %v", failure.Class, failure.StatusCode, failure, tc.class, tc.got.status, tc.is)
			}
		})
	}
}

// TestEveryStatusOfAPost sends one POST for each status and body form: none is
// sent twice, and the class follows from the status alone.
func TestEveryStatusOfAPost(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{
		"nothing": "", "JSON": `{"error":"no"}`, "HTML": "<!DOCTYPE html>", "truncated": `{"id":`, "no record": `{"id":null}`,
	}
	statuses := []int{
		200, 201, 202, 203, 204, 206, 226, 299, 300, 301, 302, 303, 304, 305, 307, 308, 399,
		400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 421, 422, 423, 424, 425, 426, 428, 431, 451, 499,
		500, 501, 502, 503, 504, 505, 507, 508, 511, 520, 599,
	}
	for _, status := range statuses {
		want := ErrUnknownOutcome
		if status >= 300 && status < 500 {
			want = ErrRefused
		}
		for form, body := range bodies {
			f := &fake{answer: func(int, *http.Request) (int, http.Header, string) { return status, nil, body }}
			c := newFakeClient(t, f)
			for name, post := range map[string]func() (*Job, error){
				"create":  func() (*Job, error) { return c.CreateJob(t.Context(), "p", "x") },
				"message": func() (*Job, error) { return c.SendMessage(t.Context(), "p", "job_1", "x") },
			} {
				f.posts = 0
				_, err := post()
				var failure *Error
				if !errors.As(err, &failure) || !errors.Is(err, want) || failure.StatusCode != status || failure.ProjectID != "p" {
					t.Errorf("%s answered %d %s: %v, want %v", name, status, form, err, want)
				}
				if f.posts != 1 {
					t.Errorf("%s answered %d %s: %d POSTs, want 1", name, status, form, f.posts)
				}
				if got := errors.Is(err, ErrUnauthorized); got != (status == 401 || status == 403) {
					t.Errorf("%s answered %d: ErrUnauthorized %t", name, status, got)
				}
				if got := errors.Is(err, ErrNotFound); got != (status == 404 && form != "HTML") {
					t.Errorf("%s answered %d %s: ErrNotFound %t", name, status, form, got)
				}
				if got := errors.Is(err, ErrRedirected); got != (status/100 == 3) {
					t.Errorf("%s answered %d: ErrRedirected %t", name, status, got)
				}
				if got := errors.Is(err, ErrWebPage); got != (form == "HTML" && (status < 300 || status >= 400)) {
					t.Errorf("%s answered %d %s: ErrWebPage %t", name, status, form, got)
				}
			}
		}
	}
}

// TestRefusalTellsTheServicesWords is row C08.
func TestRefusalTellsTheServicesWords(t *testing.T) {
	t.Parallel()
	forms := map[string]struct{ kind, body, want string }{
		"error":               {"application/json", `{"error":"no \u001b[31mprompt"}`, `no \u001b[31mprompt`},
		"message":             {"application/json", `{"message":"no prompt"}`, "no prompt"},
		"error and message":   {"application/json", `{"message":"second","error":"first"}`, "first"},
		"error null":          {"application/json", `{"error":null,"message":"no prompt"}`, "no prompt"},
		"error empty":         {"application/json", `{"error":"","message":"no prompt"}`, "no prompt"},
		"error a flag":        {"application/json", `{"error":true,"message":"no prompt"}`, "no prompt"},
		"nested":              {"application/json", `{"error":{"code":7,"message":"no prompt"}}`, "no prompt"},
		"problem+json":        {"application/problem+json", `{"type":"about:blank","title":"Bad","detail":"no prompt","status":400}`, "no prompt"},
		"problem, title only": {"application/problem+json", `{"type":"about:blank","title":"Bad"}`, "Bad"},
		"text":                {"text/plain", " no prompt\n", "no prompt"},
		"JSON string":         {"application/json", `"no prompt"`, `"no prompt"`},
		"long":                {"application/json", `{"error":"` + strings.Repeat("x", 600) + `"}`, strings.Repeat("x", 511) + "…"},
		"broken UTF-8":        {"text/plain", "a\xffb", `a\xffb`},
		"object without text": {"application/json", `{"code":7}`, ""},
		"HTML":                {"text/html; charset=utf-8", "no prompt", ""},
		"HTML in capitals":    {"Text/HTML", "no prompt", ""},
		"HTML unlabelled":     {"", " \n<!doctype html><h1>no", ""},
		"nothing":             {"", "", ""},
		"key":                 {"application/json", `{"error":"bad ` + canary + `."}`, "bad (sensitive)."},
	}
	for _, status := range []int{400, 401, 403, 404, 409, 413, 422} {
		for name, form := range forms {
			t.Run(fmt.Sprintf("%d/%s", status, name), func(t *testing.T) {
				t.Parallel()
				f := &fake{answer: func(int, *http.Request) (int, http.Header, string) {
					return status, headers("Content-Type", form.kind), form.body
				}}
				_, err := newFakeClient(t, f).CreateJob(t.Context(), "p", "x")
				want := Error{Op: OpCreate, Class: Refused, ProjectID: "p", Request: "POST https://service.invalid/v2/agent/p/job", StatusCode: status, Detail: form.want}
				if strings.HasPrefix(name, "HTML") {
					want.Err = ErrWebPage
				}
				var got *Error
				if !errors.As(err, &got) {
					t.Fatalf("%v, want a refusal", err)
				}
				if diff := cmp.Diff(want, *got, cmpopts.EquateErrors()); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
				if !strings.HasSuffix(err.Error(), form.want) || !strings.Contains(err.Error(), fmt.Sprint(status)) {
					t.Errorf("Error() = %q, want the status and %q in it", err, form.want)
				}
				if f.posts != 1 {
					t.Errorf("%d POSTs, want 1", f.posts)
				}
			})
		}
	}
}

// TestFailureNamesItsRequest: a wrong base URL or project shows in it.
func TestFailureNamesItsRequest(t *testing.T) {
	t.Parallel()
	create := func(c *Client) error { _, err := c.CreateJob(t.Context(), "p", "x"); return err }
	for name, tc := range map[string]struct {
		base string
		dial error
		call func(*Client) error
		want string
	}{
		"create":            {"https://service.invalid", nil, create, "POST https://service.invalid/v2/agent/p/job"},
		"no connection":     {"https://service.invalid", ErrCertificate, create, "POST https://service.invalid/v2/agent/p/job"},
		"prefix twice":      {"https://service.invalid/v2/", nil, create, "POST https://service.invalid/v2/v2/agent/p/job"},
		"key in the prefix": {"https://service.invalid/" + canary, nil, create, "POST https://service.invalid/(sensitive)/v2/agent/p/job"},
		"message": {"https://service.invalid", nil, func(c *Client) error { _, err := c.SendMessage(t.Context(), "p", "j", "x"); return err },
			"POST https://service.invalid/v2/agent/p/job/j/message"},
		"get": {"https://service.invalid", nil, func(c *Client) error { _, err := c.GetJob(t.Context(), "p", "j"); return err },
			"GET https://service.invalid/v2/agent/p/job/j"},
		"none made": {"https://service.invalid", nil, func(c *Client) error { _, err := c.CreateJob(t.Context(), "a/b", "x"); return err }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{
				dial:   func(context.Context, int) error { return tc.dial },
				answer: func(int, *http.Request) (int, http.Header, string) { return 404, nil, "" },
			}
			c := newClient(t, tc.base)
			c.postTransport, c.getTransport = f, f
			var failure *Error
			if err := tc.call(c); !errors.As(err, &failure) || failure.Request != tc.want {
				t.Errorf("%v, request %q, want %q", err, failure.Request, tc.want)
			}
		})
	}
}

// TestRedirectIsNotFollowed is row C10, for GETs too.
func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, target := range []string{"another host", "same host"} {
			t.Run(fmt.Sprintf("%d/%s", status, target), func(t *testing.T) {
				t.Parallel()
				other := startService(t, nil, reply(201, record))
				s := startService(t, nil, func(conn net.Conn, _ *http.Request, _ int) {
					to := other.url
					if target == "same host" {
						to = "http://" + conn.LocalAddr().String()
					}
					write(conn, status, record, "Location: "+to+"/v2/agent/p/job")
				})
				c := newClient(t, s.url)
				_, err := c.CreateJob(t.Context(), "p", "x")
				if !errors.Is(err, ErrRefused) || !errors.Is(err, ErrRedirected) || !strings.Contains(err.Error(), "/v2/agent/p/job") {
					t.Errorf("CreateJob: %v, want a refusal that names the target", err)
				}
				if _, err := c.GetJob(t.Context(), "p", "job_1"); !errors.Is(err, ErrRefused) || !errors.Is(err, ErrRedirected) {
					t.Errorf("GetJob: %v, want a refusal", err)
				}
				if got := s.counted(); got.posts != 1 || got.gets != 1 {
					t.Errorf("the service got %+v, want 1 POST and 1 GET", got)
				}
				if got := other.counted(); got != (counted{}) {
					t.Errorf("the other side got %+v, want nothing", got)
				}
			})
		}
	}
}
