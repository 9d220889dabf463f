// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// host stands in for the API of GitHub and GitLab, where one pull request brought each commit, and for a state behind HTTP.
type host struct {
	mu          sync.Mutex
	environment string            // of the last run
	outputs     map[string]string // of the last run
	kept        string            // the state that the last run keeps as an artifact
	comments    []string
	head        string            // of the branch; "": it cannot be read
	isRetried   bool              // whether GitLab's job is
	pulls       map[string]string // states by number, or where they are now; the others are open
	state, lock []byte
	refuse      int // writes of the state, from the first one on; -1: all
}

const thePull = "7"

var (
	listed = regexp.MustCompile(`^/(repos/example/docs|projects/42)/(issues|merge_requests)/7/(comments|notes)$`)
	edited = regexp.MustCompile(`^/(repos/example/docs/issues/comments|projects/42/merge_requests/7/notes)/10(\d)$`)
	ofPull = regexp.MustCompile(`^/(?:repos/example/docs/pulls|projects/example/docs/merge_requests)/(\d+)$`)
)

func (h *host) ran(environment string, outputs map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.environment, h.outputs = environment, outputs
}

func (h *host) stored() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.state)
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == "/state" {
		h.serveState(w, r, body)
		return
	}
	var sent struct{ Body string }
	_ = json.Unmarshal(body, &sent)
	reply := func(value any) { _ = json.NewEncoder(w).Encode(value) }
	path, pull := r.URL.Path, ofPull.FindStringSubmatch(r.URL.Path)
	switch {
	case r.Header.Get("Authorization") != "Bearer token":
		http.Error(w, "no token", http.StatusUnauthorized)
	case strings.Contains(path, "/commits/"):
		reply([]map[string]int{{"number": 7, "iid": 7}})
	case strings.HasSuffix(path, "/branches/main") && h.head != "":
		reply(map[string]any{"commit": map[string]string{"sha": h.head, "id": h.head}})
	case path == "/projects/42/pipelines/101/jobs":
		jobs := []map[string]string{{"name": "agent apply: agent"}, {"name": "agent plan: agent"}}
		if h.isRetried {
			jobs = append(jobs, jobs...)
		}
		reply(jobs)
	case listed.MatchString(path) && r.Method == http.MethodPost:
		h.comments = append(h.comments, sent.Body)
	case listed.MatchString(path):
		all := []map[string]any{}
		for i, text := range h.comments {
			all = append(all, map[string]any{"id": i + 100, "body": text})
		}
		reply(all)
	case edited.MatchString(path) && (r.Method == http.MethodPatch || r.Method == http.MethodPut):
		h.comments[edited.FindStringSubmatch(path)[2][0]-'0'] = sent.Body
	case pull != nil && strings.HasPrefix(h.pulls[pull[1]], "http"):
		w.Header().Set("Location", h.pulls[pull[1]])
		w.WriteHeader(http.StatusMovedPermanently)
		reply(map[string]string{"message": "Moved Permanently"})
	case pull != nil:
		reply(map[string]any{"state": map[bool]string{true: "open", false: h.pulls[pull[1]]}[h.pulls[pull[1]] == ""]})
	default:
		http.NotFound(w, r)
	}
}

func (h *host) serveState(w http.ResponseWriter, r *http.Request, body []byte) {
	switch {
	case r.Method == "LOCK" && h.lock != nil:
		w.WriteHeader(http.StatusLocked)
		_, _ = w.Write(h.lock)
	case r.Method == "LOCK":
		h.lock = body
	case r.Method == "UNLOCK":
		h.lock = nil
	case r.Method == http.MethodPost && h.refuse != 0:
		h.refuse--
		http.Error(w, "no", http.StatusForbidden)
	case r.Method == http.MethodPost:
		h.state = body
	case h.state == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		_, _ = w.Write(h.state)
	}
}
