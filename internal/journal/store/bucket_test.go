// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

func openFakeBucket(t *testing.T, scope string) (*fakes3.Server, Store) {
	t.Helper()
	f := fakes3.New(t)
	l, err := ParseURL(f.URL)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(l, scope, new(cli.Process))
	if err != nil {
		t.Fatal(err)
	}
	return f, s
}

// Foreign objects are left alone. A listing has all pages, and only the names of its scope
// that start with the prefix.
func TestS3_list(t *testing.T) {
	f, s := openFakeBucket(t, "scope")
	var want []Name
	key := CreateKey("p", "a", "")
	for range 50 {
		want = append(want, NewName(key, "run1"))
	}
	for _, name := range append(want, NewName(CreateKey("p", "b", ""), "run1")) {
		if err := s.Write(t.Context(), name, &Entry{}); err != nil {
			t.Fatal(err)
		}
	}
	f.Lock()
	for _, name := range []string{"scope/state.json", "scope/deeper/" + want[0].String() + suffix, "other/" + want[0].String() + suffix} {
		f.Objects["a/prefix/"+name] = []byte("{}")
	}
	f.Unlock()
	got, err := s.List(t.Context(), string(key)+"-")
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b Name) bool { return a.ID < b.ID })); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// A response of 404 says that the object is gone, and 403 nothing.
func TestS3_responses(t *testing.T) {
	f, s := openFakeBucket(t, "scope")
	name := NewName(CreateKey("p", "a", ""), "run1")
	for status, isError := range map[int]bool{http.StatusNotFound: false, http.StatusForbidden: true} {
		f.SetHook(func(*http.Request, func()) int { return status })
		e, readErr := s.Read(t.Context(), name)
		if removeErr := s.Remove(t.Context(), name); e != nil || (readErr != nil) != isError || (removeErr != nil) != isError {
			t.Errorf("%d: %v, %v, %v", status, e, readErr, removeErr)
		}
		if _, err := s.List(t.Context(), ""); err == nil {
			t.Errorf("%d: listed", status)
		}
	}
}
