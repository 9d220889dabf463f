// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

func TestS3_claim(t *testing.T) {
	for _, test := range []struct {
		name  string
		claim func(f *fakes3.Server, takeOver, apply func()) int // how the first one is answered; nil: conditions are ignored
		want  string                                             // "error": nothing may be sent
		kept  []string
	}{
		{"the first attempt arrived without its response", func(_ *fakes3.Server, _, apply func()) int { apply(); return 412 }, "job-1", []string{"create job-1 second"}},
		{"another run was faster", func(_ *fakes3.Server, takeOver, _ func()) int { takeOver(); return 0 }, "none", []string{"create job-1 third"}},
		{"conflict", func(*fakes3.Server, func(), func()) int { return 409 }, "job-1", []string{"create job-1 second"}},
		{"it is gone", func(f *fakes3.Server, _, _ func()) int { f.Clear(); return 0 }, "none", nil},
		{"it is gone, with another status", func(f *fakes3.Server, _, _ func()) int { f.Clear(); return 412 }, "none", nil},
		{"the condition does not hold although nothing changed", func(*fakes3.Server, func(), func()) int { return 412 }, "error", []string{"create job-1 first"}},
		{"conditions are ignored", nil, "error", []string{"create job-1 first"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, l := newFakeS3(t)
			post(t, open(t, l, "first"), create, "", "job-1")
			other := open(t, l, "third")
			var claimed atomic.Bool
			f.SetHook(func(r *http.Request, apply func()) int {
				switch {
				case test.claim == nil:
					r.Header.Del("If-Match")
				case r.Header.Get("If-Match") != "" && !strings.Contains(r.URL.Path, "probe-") && claimed.CompareAndSwap(false, true):
					return test.claim(f, func() { wantTakeOver(t, other, create, "job-1") }, apply)
				}
				return 0
			})
			o, err := open(t, l, "second").TakeOver(t.Context(), create)
			got := jobOf(o)
			if err != nil {
				got = "error"
			}
			if got != test.want {
				t.Errorf("took over %s, %v; want %s", got, err, test.want)
			}
			wantStored(t, l, test.kept...)
			if len(f.Objects) != len(test.kept) {
				t.Error("the probe was not removed")
			}
		})
	}
}

// The cause of a failed load is the first failure, not that it ended the others.
// A response of 404 to a removal is no failure: the object is gone.
func TestS3_responses(t *testing.T) {
	f, l := newFakeS3(t)
	j := open(t, l, "first")
	for range 3 * maxReads {
		post(t, j, create, "", "job-1")
	}
	f.SetHook(func(r *http.Request, _ func()) int {
		switch {
		case r.Method == http.MethodDelete:
			return http.StatusNotFound
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, suffix):
			return http.StatusForbidden
		}
		return 0
	})
	if _, err := open(t, l, "second").Announce(t.Context(), create); statusOf(err) != http.StatusForbidden {
		t.Errorf("got %v", err)
	}
	c := send(t, j, otherCreate, "")
	c.Withdrawn()
	if err := c.Unrecorded(); err != nil {
		t.Error(err)
	}
}

// The clock is the server's, an hour from ours. The claim of a request changes
// the time of its object, but not when it was sent.
func TestS3_X15_clock(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		f, l := newFakeS3(t)
		f.Ahead = ahead
		ref := send(t, open(t, l, "first"), create, "").Ref()
		if off := time.UnixMilli(ref.At).Sub(f.Now()); off.Abs() > 2*time.Second {
			t.Errorf("sent %s from the server's time", off)
		}
		f.Lock()
		for _, object := range f.Objects {
			object.Modified = object.Modified.Add(-time.Hour)
		}
		f.Unlock()
		o, err := open(t, l, "second").TakeOver(t.Context(), create)
		if err != nil || jobOf(o) != "unknown" {
			t.Fatal(jobOf(o), err)
		}
		if late := o.SentAt.Sub(time.UnixMilli(ref.At).Add(-time.Hour)); late.Abs() > 2*time.Second || (o.Age-time.Hour).Abs() > 4*time.Second {
			t.Errorf("sent at %s, %s late, %s ago", o.SentAt, late, o.Age)
		}
	}
}

// Foreign objects under the prefix are left alone, damaged ones too.
func TestS3_foreignObjects(t *testing.T) {
	f, l := newFakeS3(t)
	post(t, open(t, l, "first"), create, "", "job-1")
	f.Lock()
	for _, name := range []string{"a/prefix/state.json", "a/prefix/deeper/" + newID() + suffix, "a/" + newID() + suffix} {
		f.Objects[name] = &fakes3.Object{Text: []byte("{}"), ETag: "1", Modified: f.Now().Add(-2 * maxAge)}
	}
	f.Objects["a/prefix/"+newID()+suffix] = &fakes3.Object{Text: []byte("{}"), ETag: "1", Modified: f.Now()}
	f.Unlock()
	next, reported := openReporting(t, l, "second")
	wantTakeOver(t, next, create, "job-1")
	if errs := wantReports(t, reported, 1); !errors.Is(errors.Join(errs...), errDamaged) {
		t.Error(errs)
	}
	if len(f.Objects) != 5 {
		t.Errorf("%d objects are left", len(f.Objects))
	}
}
