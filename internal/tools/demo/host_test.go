// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
)

// host stands in for the API of GitHub and GitLab, where one pull request brought each commit, and for a state behind HTTP.
type host struct {
	mu          sync.Mutex
	outputs     map[string]string // of the last run
	kept        string            // the state that the last run keeps as an artifact
	comment     string            // the one of the pull request
	comments    int
	head        string            // of the branch; "": it cannot be read
	isRetried   bool              // whether GitLab's job is
	pulls       map[string]string // states by number, or where they are now; the others are open
	state, lock []byte
	refuse      int // writes of the state, from the first one on; -1: all
}

var (
	listed = regexp.MustCompile(`^/(repos/example/docs|projects/42)/(issues|merge_requests)/7/(comments|notes)$`)
	edited = regexp.MustCompile(`^/(repos/example/docs/issues/comments|projects/42/merge_requests/7/notes)/100$`)
	ofPull = regexp.MustCompile(`^/(?:repos/example/docs/pulls|projects/example/docs/merge_requests)/(\d+)$`)
)

// ran reads what a run hands on to the next job, and the state that it keeps.
func (h *host) ran(outputs, kept string) {
	text, _ := os.ReadFile(outputs)
	state, _ := os.ReadFile(kept)
	h.outputs, h.kept = map[string]string{}, string(state)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		h.outputs[strings.ToLower(strings.TrimPrefix(name, "AGENT_"))] = value
	}
	delete(h.outputs, "kept")
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == "/state" {
		h.serveState(w, r.Method, body)
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
		h.comment, h.comments = sent.Body, h.comments+1
	case listed.MatchString(path):
		reply([]map[string]any{{"id": 99, "body": "Hello"}, {"id": 100, "body": h.comment}})
	case edited.MatchString(path) && (r.Method == http.MethodPatch || r.Method == http.MethodPut):
		h.comment = sent.Body
	case pull != nil && strings.HasPrefix(h.pulls[pull[1]], "http"):
		http.Redirect(w, r, h.pulls[pull[1]], http.StatusMovedPermanently)
	case pull != nil:
		reply(map[string]any{"state": map[bool]string{true: "open", false: h.pulls[pull[1]]}[h.pulls[pull[1]] == ""]})
	default:
		http.NotFound(w, r)
	}
}

func (h *host) serveState(w http.ResponseWriter, method string, body []byte) {
	switch {
	case method == "LOCK" && h.lock != nil:
		w.WriteHeader(http.StatusLocked)
		_, _ = w.Write(h.lock)
	case method == "LOCK":
		h.lock = body
	case method == "UNLOCK":
		h.lock = nil
	case method == http.MethodPost && h.refuse != 0:
		h.refuse--
		http.Error(w, "no", http.StatusForbidden)
	case method == http.MethodPost:
		h.state = body
	case h.state == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		_, _ = w.Write(h.state)
	}
}
