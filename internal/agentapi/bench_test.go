// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

const fullRecord = `{"id":"job_0123456789abcdef","status":"completed","source":{"repository":"example/docs","ref":"main"},
	"model":"some-model-1","prLink":"https://example.invalid/pull/17","createdAt":"2026-01-02T03:04:05.678Z","archivedAt":null}`

func BenchmarkDecodeJob(b *testing.B) {
	b.ReportAllocs()
	data := []byte(fullRecord)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := decodeJob(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGetJob(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(fullRecord))
	}))
	defer s.Close()
	c := newClient(b, s.URL)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.GetJob(b.Context(), "p", "job_0123456789abcdef"); err != nil {
			b.Fatal(err)
		}
	}
}
