// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// response is the head of an HTTP response, and as much of its body as could be read.
type response struct {
	began  time.Time // when its request did
	took   time.Duration
	status int // 0: none
	header http.Header
	body   []byte

	// Of a POST:
	obstacle  error // why it was not sent
	isClaimed bool  // the recorder has claimed it
	isBegun   bool  // the transport has read from its body, so bytes may have been sent
	isCut     bool  // not all of its body was sent
}

// isSuccess reports whether the status is a success: no other response can have a job record.
func (r *response) isSuccess() bool { return r.status/100 == 2 }

// message finds the service's error message: a string under "error" or
// "message", an object with a "message" under "error", problem+json's "detail" or
// "title", or the text itself. A web page contains nothing useful.
func (r *response) message(key Key) string {
	if r.isWebPage() {
		return ""
	}
	fields, err := decodeObject(r.body)
	if err != nil {
		return strings.TrimSpace(key.mask(string(r.body)))
	}
	for _, name := range []string{"error", "message", "detail", "title"} {
		nested, _ := decodeObject(fields[name])
		for _, value := range []json.RawMessage{fields[name], nested["message"]} {
			if text := key.text(value); text != nil {
				return *text
			}
		}
	}
	return ""
}

// isWebPage believes the body before its label: some services label JSON as HTML.
func (r *response) isWebPage() bool {
	kind := strings.ToLower(r.header.Get("Content-Type"))
	start := strings.TrimSpace(string(r.body[:min(len(r.body), 64)]))
	isLabelled := strings.HasPrefix(kind, "text/html") || strings.HasPrefix(kind, "application/xhtml")
	return strings.HasPrefix(start, "<") || isLabelled && !strings.HasPrefix(start, "{")
}
