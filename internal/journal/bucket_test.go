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

// hook answers a request of a fake bucket, when it returns a status.
type hook = func(r *http.Request, apply func()) int

func isClaim(r *http.Request) bool {
	return r.Method == http.MethodPut && r.Header.Get("If-Match") != "" && !strings.Contains(r.URL.Path, "probe-")
}

// onClaim answers the first claim, and no other request.
func onClaim(answer func(apply func()) int) hook {
	var done atomic.Bool
	return func(r *http.Request, apply func()) int {
		if !isClaim(r) || !done.CompareAndSwap(false, true) {
			return 0
		}
		return answer(apply)
	}
}

func TestS3_claim(t *testing.T) {
	type fake struct {
		*testing.T
		*fakes3.Server
		l Location
	}
	tests := []struct {
		name string
		hook func(f fake) hook
		want string // "error": nothing may be sent
		kept []string
	}{
		{"the first attempt arrived without its response", func(fake) hook {
			return onClaim(func(apply func()) int { apply(); return http.StatusPreconditionFailed })
		}, "job-1", []string{"create job-1 second"}},
		{"another run was faster", func(f fake) hook {
			other := open(f.T, f.l, "third")
			return onClaim(func(func()) int { wantTakeOver(f.T, other, create, "job-1"); return 0 })
		}, "none", []string{"create job-1 third"}},
		{"conflict", func(fake) hook {
			return onClaim(func(func()) int { return http.StatusConflict })
		}, "job-1", []string{"create job-1 second"}},
		{"it is gone", func(f fake) hook {
			return onClaim(func(func()) int { f.Clear(); return 0 })
		}, "none", nil},
		{"it is gone, with another status", func(f fake) hook {
			return onClaim(func(func()) int { f.Clear(); return http.StatusPreconditionFailed })
		}, "none", nil},
		{"no condition ever holds", func(fake) hook {
			return func(r *http.Request, _ func()) int {
				return map[bool]int{true: http.StatusPreconditionFailed}[isClaim(r)]
			}
		}, "error", []string{"create job-1 first"}},
		{"conditions are ignored", func(fake) hook {
			return func(r *http.Request, _ func()) int { r.Header.Del("If-Match"); return 0 }
		}, "error", []string{"create job-1 first"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, l := newFakeS3(t)
			post(t, open(t, l, "first"), create, "", "job-1")
			f.SetHook(test.hook(fake{t, f, l}))
			o, err := open(t, l, "second").TakeOver(t.Context(), create)
			got := jobOf(o)
			if err != nil {
				got = "error"
			}
			if got != test.want {
				t.Errorf("took over %s, %v; want %s", got, err, test.want)
			}
			f.SetHook(nil)
			wantStored(t, l, test.kept...)
			if len(f.Objects) != len(test.kept) {
				t.Error("the probe was not removed")
			}
		})
	}
}

// The cause of a failed load is the first failure, not that it ended the others.
func TestS3_loadCause(t *testing.T) {
	f, l := newFakeS3(t)
	j := open(t, l, "first")
	for range 3 * maxReads {
		post(t, j, create, "", "job-1")
	}
	f.SetHook(func(r *http.Request, _ func()) int {
		return map[bool]int{true: http.StatusForbidden}[strings.HasSuffix(r.URL.Path, suffix)]
	})
	if _, err := open(t, l, "second").Announce(t.Context(), create); statusOf(err) != http.StatusForbidden {
		t.Errorf("got %v", err)
	}
}

// Some servers respond 404 to the removal of an object that is gone: that is no error.
func TestS3_removal(t *testing.T) {
	f, l := newFakeS3(t)
	j := open(t, l, "first")
	post(t, j, create, "", "job-1")
	f.SetHook(func(r *http.Request, _ func()) int {
		return map[bool]int{true: http.StatusNotFound}[r.Method == http.MethodDelete]
	})
	if err := j.Forget(t.Context(), "job-1"); err != nil {
		t.Error(err)
	}
}

// X15: the clock is the server's, an hour from ours. The claim of a request
// changes the time of its object, but not when it was sent.
func TestS3_clock(t *testing.T) {
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
		if late := o.SentAt.Sub(time.UnixMilli(ref.At).Add(-time.Hour)); late.Abs() > 2*time.Second {
			t.Errorf("sent at %s, %s late", o.SentAt, late)
		}
	}
}

// Foreign objects under the prefix are left alone, damaged ones too.
func TestS3_foreignObjects(t *testing.T) {
	f, l := newFakeS3(t)
	post(t, open(t, l, "first"), create, "", "job-1")
	f.Lock()
	foreign := &fakes3.Object{Text: []byte("{}"), ETag: "1", Modified: f.Now().Add(-2 * maxAge)}
	f.Objects["a/prefix/state.json"], f.Objects["a/prefix/deeper/"+newID()+suffix], f.Objects["a/"+newID()+suffix] = foreign, foreign, foreign
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
