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
	"slices"
	"time"
	"unicode/utf8"
)

// Kind is what a request is for, by its method and path.
type Kind string

// The kinds of request.
const (
	KindCreate  Kind = "create"
	KindMessage Kind = "message"
	KindGet     Kind = "get"
	// KindOther is any other path or method.
	KindOther Kind = "other"
)

// Request is one recorded request. Header is shared: do not change it.
type Request struct {
	Time    time.Time // when its header had arrived
	Kind    Kind
	Method  string
	Path    string // escaped as it was sent, with the query if there was one
	Project string
	JobID   string
	Prompt  string
	Fields  map[string]any // of the body of a POST, as encoding/json decodes them; shared: do not change it
	// Header lacks Authorization; Authorized tells whether it was right.
	Header     http.Header
	Authorized bool
	// Status is what was answered; 0 while unanswered, or when the response was dropped.
	Status int
}

// Counts is how many requests of each kind were read completely, whatever the
// response.
type Counts struct{ Create, Message, Get, Other int }

// of returns the counter of a kind.
func (c *Counts) of(kind Kind) *int {
	switch kind {
	case KindCreate:
		return &c.Create
	case KindMessage:
		return &c.Message
	case KindGet:
		return &c.Get
	default:
		return &c.Other
	}
}

// Requests returns all requests in the order in which their bodies were read, except
// those to the control paths.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Request, len(s.requests))
	for i, r := range s.requests {
		list[i] = *r
	}
	return list
}

// Counts returns how many requests of each kind were read completely.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// jobPath is matched with the escaped path, so that an escaped slash stays
// inside its segment.
var jobPath = regexp.MustCompile(`^/v2/agent/([^/]+)/job(?:/([^/]+)(/message)?)?$`)

// receive reads a request completely and records it. The refusal has a status if the
// request is invalid.
func (s *Server) receive(r *http.Request) (request *Request, refusal response) {
	request = &Request{
		Time:       time.Now(),
		Method:     r.Method,
		Path:       r.URL.RequestURI(),
		Header:     r.Header.Clone(),
		Authorized: s.authorized(r.Header),
	}
	request.Header.Del("Authorization")
	request.route(r.URL)

	body, readErr := io.ReadAll(r.Body)
	err := readErr
	if err == nil && (request.Kind == KindCreate || request.Kind == KindMessage) {
		request.Fields, err = parseBody(request.Kind, r.Header.Get("Content-Type"), body)
		request.Prompt, _ = request.Fields["prompt"].(string)
	}
	switch {
	case !request.Authorized:
		refusal = unauthorized()
	case request.Kind == KindOther:
		refusal = failure(http.StatusNotFound, "not found")
	case err != nil:
		refusal = failure(http.StatusBadRequest, err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request)
	// The service could not have acted on a body that broke off.
	if readErr == nil {
		*s.counts.of(request.Kind)++
	}
	return request, refusal
}

// route determines what a request is for. It never redirects.
func (r *Request) route(u *url.URL) {
	r.Kind = KindOther
	parts := jobPath.FindStringSubmatch(u.EscapedPath())
	if parts == nil {
		return
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
	if r.Method == method {
		r.Kind = kind
	}
}

// requestFields are what the service accepts, as its documentation spells them.
func requestFields() map[Kind][]string {
	return map[Kind][]string{KindCreate: {"prompt"}, KindMessage: {"prompt"}}
}

// parseBody returns the fields of a create or message, with an error if the service refuses them.
func parseBody(kind Kind, contentType string, body []byte) (fields map[string]any, _ error) { // a struct's names would match in any case
	if t, _, err := mime.ParseMediaType(contentType); err != nil || t != "application/json" {
		return nil, errors.New("the Content-Type must be application/json")
	}
	// encoding/json would replace such bytes silently.
	if !utf8.Valid(body) {
		return nil, errors.New("request body is not valid UTF-8")
	}
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("request body is not the JSON expected: %w", err)
	}
	for name := range fields {
		if !slices.Contains(requestFields()[kind], name) { // the client has misspelt an optional one, perhaps, which a real service would ignore
			return nil, fmt.Errorf("request body has an unknown field %q", name)
		}
	}
	prompt, _ := fields["prompt"].(string)
	if prompt == "" {
		return nil, errors.New("prompt is required, a text, and must not be empty")
	}
	_, err := Script{}.directed(prompt)
	return fields, err
}
