// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

// once answers the first request that matches, and no other.
func once(match func(r *http.Request) bool, answer func(apply func()) int) func(r *http.Request, apply func()) int {
	done := make(chan struct{}, 1)
	return func(r *http.Request, apply func()) int {
		if !match(r) {
			return 0
		}
		select {
		case done <- struct{}{}:
			return answer(apply)
		default:
			return 0
		}
	}
}

func isClaim(r *http.Request) bool {
	return r.Method == http.MethodPut && r.Header.Get("If-Match") != "" && !strings.Contains(r.URL.Path, "probe-")
}

// The cause of a failed load is the first failure, not that it ended the others.
func TestS3_loadCause(t *testing.T) {
	f := newFakeS3(t)
	_, j := open(t, f.location, "first")
	for range 3 * maxReads {
		post(t, j, create, "", "job-1")
	}
	f.SetHook(func(r *http.Request, _ func()) int {
		if strings.HasSuffix(r.URL.Path, suffix) {
			return http.StatusForbidden
		}
		return 0
	})
	_, next := open(t, f.location, "second")
	if _, err := next.Announce(t.Context(), create); statusOf(err) != http.StatusForbidden {
		t.Errorf("got %v", err)
	}
}

func TestS3_claim(t *testing.T) {
	tests := []struct {
		name string
		hook func(t *testing.T, f *fakeS3) func(r *http.Request, apply func()) int
		want string // "error": nothing may be sent
		kept []string
	}{
		{"the first attempt arrived without its response", func(*testing.T, *fakeS3) func(*http.Request, func()) int {
			return once(isClaim, func(apply func()) int { apply(); return http.StatusPreconditionFailed })
		}, "job-1", []string{"create job-1 second"}},
		{"another run was faster", func(t *testing.T, f *fakeS3) func(*http.Request, func()) int {
			_, other := open(t, f.location, "third")
			return once(isClaim, func(func()) int {
				if got := takeOver(t, other, create); got != "job-1" {
					t.Errorf("the other run took over %s", got)
				}
				return 0
			})
		}, "none", []string{"create job-1 third"}},
		{"conflict", func(*testing.T, *fakeS3) func(*http.Request, func()) int {
			return once(isClaim, func(func()) int { return http.StatusConflict })
		}, "job-1", []string{"create job-1 second"}},
		{"it is gone", func(_ *testing.T, f *fakeS3) func(*http.Request, func()) int {
			return once(isClaim, func(func()) int { f.Clear(); return 0 })
		}, "none", nil},
		{"it is gone, with another status", func(_ *testing.T, f *fakeS3) func(*http.Request, func()) int {
			return once(isClaim, func(func()) int { f.Clear(); return http.StatusPreconditionFailed })
		}, "none", nil},
		{"no condition ever holds", func(*testing.T, *fakeS3) func(*http.Request, func()) int {
			return func(r *http.Request, _ func()) int {
				return map[bool]int{true: http.StatusPreconditionFailed}[isClaim(r)]
			}
		}, "error", []string{"create job-1 first"}},
		{"conditions are ignored", func(*testing.T, *fakeS3) func(*http.Request, func()) int {
			return func(r *http.Request, _ func()) int { r.Header.Del("If-Match"); return 0 }
		}, "error", []string{"create job-1 first"}},
		{"no rights", func(*testing.T, *fakeS3) func(*http.Request, func()) int {
			return func(r *http.Request, _ func()) int {
				return map[bool]int{true: http.StatusForbidden}[r.Method == http.MethodPut]
			}
		}, "error", []string{"create job-1 first"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFakeS3(t)
			_, j := open(t, f.location, "first")
			post(t, j, create, "", "job-1")
			f.SetHook(test.hook(t, f))
			_, next := open(t, f.location, "second")
			o, err := next.TakeOver(t.Context(), create)
			got := jobOf(o)
			if err != nil {
				got = "error"
			}
			if got != test.want {
				t.Errorf("took over %s, %v; want %s", got, err, test.want)
			}
			f.SetHook(nil)
			if diff := cmp.Diff(test.kept, stored(t, f.location, keyNames)); diff != "" {
				t.Error(diff)
			}
			f.Lock()
			defer f.Unlock()
			for name := range f.Objects {
				if strings.Contains(name, "probe-") {
					t.Errorf("%s was not removed", name)
				}
			}
		})
	}
}

// X15: the clock is the server's, an hour from ours.
func TestS3_clock(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		f := newFakeS3(t)
		f.Ahead = ahead
		_, j := open(t, f.location, "first")
		ref := send(t, j, create, "").Ref()
		if off := time.UnixMilli(ref.At).Sub(f.Now()); off > 2*time.Second || off < -2*time.Second {
			t.Errorf("sent %s from the server's time", off)
		}
	}
}

// A removal that the server forbids is an error; one of an object that is gone is not.
func TestS3_removal(t *testing.T) {
	for code, failed := range map[int]bool{http.StatusForbidden: true, http.StatusNotFound: false} {
		f := newFakeS3(t)
		_, j := open(t, f.location, "first")
		post(t, j, create, "", "job-1")
		f.SetHook(func(r *http.Request, _ func()) int { return map[bool]int{true: code}[r.Method == http.MethodDelete] })
		if err := j.Forget(t.Context(), "job-1"); errors.As(err, new(*Error)) != failed {
			t.Errorf("%d: %v", code, err)
		}
	}
}

// The claim of a request changes the time of its object, but not when it was sent.
func TestS3_sentAt(t *testing.T) {
	f := newFakeS3(t)
	_, j := open(t, f.location, "first")
	ref := send(t, j, create, "").Ref()
	f.Lock()
	for _, object := range f.Objects {
		object.Modified = object.Modified.Add(-time.Hour)
	}
	f.Unlock()
	_, next := open(t, f.location, "second")
	o, err := next.TakeOver(t.Context(), create)
	if err != nil || jobOf(o) != "unknown" {
		t.Fatal(jobOf(o), err)
	}
	if late := o.SentAt.Sub(time.UnixMilli(ref.At).Add(-time.Hour)); late > 2*time.Second || late < -2*time.Second {
		t.Errorf("sent at %s, %s late", o.SentAt, late)
	}
}

// Foreign objects under the prefix are left alone, damaged ones too.
func TestS3_foreignObjects(t *testing.T) {
	f := newFakeS3(t)
	_, j := open(t, f.location, "first")
	post(t, j, create, "", "job-1")
	f.Lock()
	foreign := &fakes3.Object{Text: []byte("{}"), ETag: "1", Modified: f.Now().Add(-2 * maxAge)}
	f.Objects["a/prefix/state.json"], f.Objects["a/prefix/deeper/"+newID()+suffix], f.Objects["a/"+newID()+suffix] = foreign, foreign, foreign
	f.Objects["a/prefix/"+newID()+suffix] = &fakes3.Object{Text: []byte("{}"), ETag: "1", Modified: f.Now()}
	f.Unlock()
	r := new(reports)
	_, next := openReporting(t, f.location, "second", r.add)
	if got := takeOver(t, next, create); got != "job-1" {
		t.Errorf("took over %s", got)
	}
	if r.count() != 1 || !errors.Is(r.errs[0], errDamaged) {
		t.Errorf("reported: %v", r.errs)
	}
	if len(f.Objects) != 5 {
		t.Errorf("%d objects are left", len(f.Objects))
	}
}
