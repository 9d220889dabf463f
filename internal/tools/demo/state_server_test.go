// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// stateServer keeps one state and its lock, as the http backend wants it.
type stateServer struct {
	t           *testing.T
	url         string
	mu          sync.Mutex
	state, lock []byte
}

func newStateServer(t *testing.T) *stateServer {
	t.Helper()
	s := &stateServer{t: t}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// environment is what the pipelines of the guide are given.
func (s *stateServer) environment() []string {
	return []string{"TF_HTTP_ADDRESS=" + s.url, "TF_HTTP_LOCK_ADDRESS=" + s.url, "TF_HTTP_UNLOCK_ADDRESS=" + s.url}
}

func (s *stateServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case r.Method == "LOCK" && s.lock != nil:
		w.WriteHeader(http.StatusLocked)
		_, _ = w.Write(s.lock)
	case r.Method == "LOCK":
		s.lock = body
	case r.Method == "UNLOCK":
		s.lock = nil
	case r.Method == http.MethodGet && s.state == nil:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
		_, _ = w.Write(s.state)
	case r.Method == http.MethodPost:
		s.state = body
	}
	if strings.Contains(string(body), canary) {
		s.t.Error("the key is in the state")
	}
}

// lockID is the id of the lock; "" is none.
func (s *stateServer) lockID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lock struct{ ID string }
	_ = json.Unmarshal(s.lock, &lock)
	return lock.ID
}
