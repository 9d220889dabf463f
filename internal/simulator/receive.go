// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"time"
	"unicode/utf8"
)

// maxBody bounds what is read of a request: far above any sensible prompt.
const maxBody = 8 << 20

// jobPath is matched with the escaped path, so that an escaped slash stays
// inside its segment.
var jobPath = regexp.MustCompile(`^/v2/agent/([^/]+)/job(?:/([^/]+)(/message)?)?$`)

// receive reads a request whole and records it. The refusal has a status if
// there is something wrong with the request.
func (s *Server) receive(r *http.Request) (request *Request, refusal answer) {
	request = &Request{
		Time:       time.Now(),
		Kind:       KindOther,
		Method:     r.Method,
		Path:       r.URL.RequestURI(),
		Header:     r.Header.Clone(),
		Authorized: s.authorized(r.Header),
	}
	request.Header.Del("Authorization")
	allow := request.route(r.URL)

	var err error
	request.Body, err = readBody(r)
	request.Complete = err == nil
	if err == nil && (request.Kind == KindCreate || request.Kind == KindMessage) {
		request.Prompt, err = parseBody(r.Header.Get("Content-Type"), request.Body)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case !request.Authorized:
		refusal = unauthorized()
	case allow != "":
		refusal = failure(http.StatusMethodNotAllowed, "method not allowed")
		refusal.header = http.Header{"Allow": {allow}}
	case request.Kind == KindOther:
		refusal = failure(http.StatusNotFound, "not found")
	case errors.As(err, &tooLarge):
		refusal = failure(http.StatusRequestEntityTooLarge, "request body too large")
	case !request.Complete:
		refusal = failure(http.StatusBadRequest, "request body could not be read")
	case err != nil:
		refusal = failure(http.StatusBadRequest, err.Error())
	}
	s.record(request)
	return request, refusal
}

// route finds out what a request asks for, and never redirects. It returns the
// method that the path would take, when it is not this one.
func (r *Request) route(u *url.URL) (allow string) {
	parts := jobPath.FindStringSubmatch(u.EscapedPath())
	if parts == nil {
		return ""
	}
	kind, method := KindCreate, http.MethodPost
	switch {
	case parts[3] != "":
		kind = KindMessage
	case parts[2] != "":
		kind, method = KindGet, http.MethodGet
	}
	r.Project, _ = url.PathUnescape(parts[1]) // what EscapedPath returns is well-formed
	r.JobID, _ = url.PathUnescape(parts[2])
	if r.Method != method {
		return method
	}
	r.Kind = kind
	return ""
}

func readBody(r *http.Request) ([]byte, error) {
	return io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
}

// parseBody returns the prompt of a create or message.
func parseBody(contentType string, body []byte) (string, error) {
	if t, _, err := mime.ParseMediaType(contentType); err != nil || t != "application/json" {
		return "", errors.New("the Content-Type must be application/json")
	}
	// encoding/json would replace such bytes silently.
	if !utf8.Valid(body) {
		return "", errors.New("request body is not valid UTF-8")
	}
	var fields struct {
		Prompt string `json:"prompt"`
	}
	if err := json.Unmarshal(body, &fields); err != nil {
		return "", fmt.Errorf("request body is not the JSON expected: %w", err)
	}
	if fields.Prompt == "" {
		return "", errors.New("prompt is required and must not be empty")
	}
	_, err := Script{}.directed(fields.Prompt)
	return fields.Prompt, err
}
