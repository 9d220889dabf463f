// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

// F10: a create costs a write, a listing and a write, whatever else is in the bucket; a plan costs one listing.
func TestS3_requests(t *testing.T) {
	s := fakes3.New(t)
	s.Page = 1000
	for i := range 11_000 {
		scope := map[bool]string{true: store.Hash("scope"), false: "other"}[i%11 == 0]
		s.Objects["a/prefix/"+scope+"/"+store.NewName(otherCreate, "first").String()+".json"] = []byte("{}")
	}
	requests := map[string]int{}
	s.SetHook(func(r *http.Request, _ func()) int {
		name := r.Method
		if r.URL.Query().Has("list-type") {
			name = "LIST"
		}
		s.Lock()
		defer s.Unlock()
		requests[name]++
		return 0
	})
	wantRequests := func(what string, want map[string]int) {
		s.Lock()
		defer s.Unlock()
		if diff := cmp.Diff(want, requests); diff != "" {
			t.Errorf("requests of %s (-want +got):\n%s", what, diff)
		}
		clear(requests)
	}
	want(t, open(t, parse(t, s.URL), "run"), create, "sent job-new")
	wantRequests("a create", map[string]int{"PUT": 2, "LIST": 1})
	j := open(t, parse(t, s.URL), "run")
	for range 100 {
		wantFound(t, j, create)
	}
	wantRequests("a plan", map[string]int{"LIST": 2}) // its pages
}
