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
	"strings"
	"unicode/utf8"
)

// maxBody bounds what is read of a request: far above any sensible prompt.
const maxBody = 8 << 20

var errBodyTooLarge = errors.New("request body too large")

// call is a request that was read, and what is wrong with it.
type call struct {
	request *Request
	// allow is the method that the path would take, when it is not this one.
	allow string
	// problem and problemStatus refuse a body that breaks the contract.
	problem       string
	problemStatus int
}

// receive reads a request whole and records it.
func (s *Server) receive(r *http.Request) call {
	req := &Request{
		Time:       s.now(),
		Kind:       KindOther,
		Method:     r.Method,
		Path:       r.URL.RequestURI(),
		Header:     r.Header.Clone(),
		Authorized: s.authorized(r.Header),
	}
	req.Header.Del("Authorization")
	c := call{request: req}
	s.route(&c, r.URL)

	var err error
	req.Body, err = readBody(r.Body)
	req.Complete = err == nil
	switch {
	case errors.Is(err, errBodyTooLarge):
		c.problem, c.problemStatus = err.Error(), http.StatusRequestEntityTooLarge
	case err != nil:
		c.problem, c.problemStatus = "request body could not be read", http.StatusBadRequest
	case req.Kind == KindCreate || req.Kind == KindMessage:
		req.Prompt, err = parseBody(r.Header.Get("Content-Type"), req.Body)
		if err != nil {
			c.problem, c.problemStatus = err.Error(), http.StatusBadRequest
		}
	}
	s.record(req)
	return c
}

// route finds out what a request asks for. It works on the escaped path, so
// that an escaped slash stays inside its segment, and never redirects.
func (s *Server) route(c *call, u *url.URL) {
	rest, ok := strings.CutPrefix(u.EscapedPath(), s.prefix+"/v2/agent/")
	if !ok {
		return
	}
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		plain, err := url.PathUnescape(part)
		if err != nil || plain == "" {
			return
		}
		parts[i] = plain
	}
	var kind Kind
	method := http.MethodPost
	switch {
	case len(parts) == 2 && parts[1] == "job":
		kind = KindCreate
	case len(parts) == 3 && parts[1] == "job":
		kind, method = KindGet, http.MethodGet
	case len(parts) == 4 && parts[1] == "job" && parts[3] == "message":
		kind = KindMessage
	default:
		return
	}
	c.request.Project = parts[0]
	if len(parts) > 2 {
		c.request.JobID = parts[2]
	}
	if c.request.Method != method {
		c.allow = method
		return
	}
	c.request.Kind = kind
}

func readBody(body io.Reader) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	data, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	if err == nil && len(data) > maxBody {
		return data[:maxBody], errBodyTooLarge
	}
	return data, err
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
		Prompt *string `json:"prompt"`
	}
	if err := json.Unmarshal(body, &fields); err != nil {
		return "", fmt.Errorf("request body is not the JSON expected: %w", err)
	}
	if fields.Prompt == nil || *fields.Prompt == "" {
		return "", errors.New("prompt is required and must not be empty")
	}
	_, err := Script{}.directed(*fields.Prompt)
	return *fields.Prompt, err
}
