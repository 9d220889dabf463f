// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
)

// backend stores a state behind HTTP.
type backend struct {
	url string

	mu    sync.Mutex
	state []byte
	// onWrite comes before each write, and reports whether it succeeds; nil: it does.
	onWrite func() bool
}

// storeRemotely moves the state, which is empty yet, to a backend.
func (w *workingDir) storeRemotely() {
	w.t.Helper()
	w.remote = &backend{}
	server := httptest.NewServer(w.remote)
	w.t.Cleanup(server.Close)
	w.remote.url = server.URL
	w.writeFile(".terraform/terraform.tfstate", string(bytes.ReplaceAll(initialized.text, []byte(initialized.url), []byte(server.URL))))
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
	case b.write():
		b.state = body
	default:
		rw.WriteHeader(http.StatusInternalServerError)
	}
}

// write calls onWrite, which may take long, without the lock.
func (b *backend) write() bool {
	f := b.onWrite
	if f == nil {
		return true
	}
	b.mu.Unlock()
	defer b.mu.Lock()
	return f()
}

func (b *backend) setOnWrite(f func() bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.onWrite = f
}

func (b *backend) read() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.state)
}
