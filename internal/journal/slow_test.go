// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

// slowStore is a bucket without a network, on the clock of the test.
type slowStore struct {
	fakes3.Server
	latency   time.Duration // of each access
	downUntil time.Time     // no response before then
}

func (s *slowStore) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case <-req.Context().Done():
		return nil, req.Context().Err()
	case <-time.After(max(s.latency, time.Until(s.downUntil))):
	}
	if req.Body == nil {
		req.Body = http.NoBody
	}
	text, err := io.ReadAll(req.Body)
	if err = errors.Join(err, req.Body.Close()); err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(text))
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, req)
	resp := recorder.Result()
	resp.Request = req
	return resp, nil
}

// openSlow opens a journal in a bucket that already has n entries.
func openSlow(t *testing.T, s *slowStore, n int) *Journal {
	t.Helper()
	s.Page, s.Objects = 1000, map[string]*fakes3.Object{}
	for range n {
		e := &entry{Key: otherCreate, Scope: "other", Project: "proj_1", JobID: "job", Accepted: true, Run: "earlier", SentAt: time.Now().UnixMilli()}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		s.Objects[newID()+suffix] = &fakes3.Object{Text: text, Modified: time.Now()}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	host := onRun("run")
	host.Network = s
	l, err := ParseURL("s3://bucket?region=us-east-1&endpoint=http://127.0.0.1:2")
	if err != nil {
		t.Fatal(err)
	}
	j, err := NewProcess(host, func(err error) { t.Error(err) }).Open(Options{Location: l, Scope: "scope", RequestTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// A create must not become slower or fail because a shared bucket holds what others have sent.
// KNOWN BREACH (F10): today it fails, because every object is read. Turn the condition round once it is mended.
func TestS3_thousandsOfEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{latency: 200 * time.Millisecond}
		j := openSlow(t, s, 5000)
		began := time.Now()
		_, err := j.Find(t.Context(), create)
		if took := time.Since(began); err == nil && took < 10*time.Second {
			t.Errorf("mended: it took %s; assert that", took)
		}
	})
}

// A store that does not respond for half a minute fails the creates of that time, and no later one.
// KNOWN BREACH (F10): today it fails all. Turn the condition round once it is mended.
func TestS3_blip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{downUntil: time.Now().Add(35 * time.Second)}
		j := openSlow(t, s, 1)
		if _, err := j.Find(t.Context(), create); err == nil {
			t.Error("no error while the store is down")
		}
		time.Sleep(time.Hour)
		if _, err := j.Find(t.Context(), create); err == nil {
			t.Error("mended: assert that there is no error")
		}
	})
}
