// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
)

// backend stores a state behind HTTP, until it refuses to.
type backend struct {
	url string

	mu      sync.Mutex
	state   []byte
	refuse  func() // called instead of storing; nil: it stores
	refused int
}

// storeRemotely moves the state, which is empty yet, to a backend.
func (w *world) storeRemotely() {
	w.t.Helper()
	w.remote = &backend{}
	server := httptest.NewServer(w.remote)
	w.t.Cleanup(server.Close)
	w.remote.url = server.URL
	w.write("")
	p := w.start("init", "-no-color", "-input=false")
	if output := p.wait(); !p.ok() {
		w.t.Fatalf("init failed:\n%s", output)
	}
}

func (b *backend) config() string {
	if b == nil {
		return ""
	}
	return fmt.Sprintf("  backend \"http\" {\n    address   = %q\n    retry_max = 0\n  }", b.url)
}

func (b *backend) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err != nil:
		rw.WriteHeader(http.StatusBadRequest)
	case r.Method == http.MethodGet && len(b.state) == 0:
		rw.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet:
		_, _ = rw.Write(b.state)
	case b.refuse != nil:
		b.refused++
		b.refuse()
		rw.WriteHeader(http.StatusInternalServerError)
	default:
		b.state = body
	}
}

// whileRefusing calls f, and refuse instead of each write.
func (b *backend) whileRefusing(refuse, f func()) {
	set := func(refuse func()) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.refuse = refuse
	}
	set(refuse)
	f()
	set(nil)
}

func (b *backend) read() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.state)
}
