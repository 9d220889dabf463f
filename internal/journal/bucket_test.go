// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

// slowBucket is a bucket without a network, on the clock of the test.
type slowBucket struct {
	fakes3.Server
	downUntil time.Time // no response before then
	requests  map[string]int
}

func (s *slowBucket) RoundTrip(req *http.Request) (*http.Response, error) {
	name := req.Method
	if req.URL.Query().Has("list-type") {
		name = "LIST"
	}
	s.requests[name]++
	if err := sleep.For(req.Context(), max(200*time.Millisecond, time.Until(s.downUntil))); err != nil {
		return nil, err
	}
	if req.Body == nil {
		req.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, req)
	resp := recorder.Result()
	resp.Request = req
	return resp, nil
}

// F10: a create costs a write, a listing and a write, whatever else is in the bucket; a plan costs one listing.
// A store that does not respond for half a minute fails the creates of that time, and no later one.
func TestS3_requests(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	synctest.Test(t, func(t *testing.T) {
		s := &slowBucket{requests: map[string]int{}}
		s.Page, s.Objects = 1000, map[string][]byte{}
		for i := range 11_000 {
			scope := map[bool]string{true: store.Hash("scope"), false: "other"}[i%11 == 0]
			s.Objects[scope+"/"+store.NewName(otherCreate, "first").String()+".json"] = []byte("{}")
		}
		open := func() *Journal {
			process := &cli.Process{Run: "run", Ended: func(cli.Sender) bool { return true }, Network: s}
			l := parse(t, "s3://bucket?region=us-east-1&endpoint=http://127.0.0.1:2")
			j, err := Open(process, Options{Location: l, Scope: "scope", RequestTimeout: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			return j
		}
		j := open()
		want(t, j, create, "sent job-new")
		if diff := cmp.Diff(map[string]int{"PUT": 2, "LIST": 1}, s.requests); diff != "" {
			t.Errorf("requests of a create (-want +got):\n%s", diff)
		}
		s.downUntil = time.Now().Add(35 * time.Second)
		want(t, j, create, "failed")
		time.Sleep(time.Minute)
		want(t, j, create, "sent job-new")

		clear(s.requests)
		j = open()
		for range 100 {
			wantAnnounced(t, j, create)
		}
		if diff := cmp.Diff(map[string]int{"LIST": 2}, s.requests); diff != "" { // its pages
			t.Errorf("requests of a plan (-want +got):\n%s", diff)
		}
	})
}
