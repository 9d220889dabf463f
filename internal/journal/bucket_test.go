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
	"github.com/minio/minio-go/v7"

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

func isWrite(r *http.Request) bool { return r.Method == http.MethodPut && !isClaim(r) }

func status(code int) func(r *http.Request, apply func()) int {
	return func(*http.Request, func()) int { return code }
}

// fewRetries keeps the S3 client from trying a broken server for long.
func fewRetries(t *testing.T) {
	t.Helper()
	before := minio.MaxRetry
	minio.MaxRetry = 2
	t.Cleanup(func() { minio.MaxRetry = before })
}

func TestS3_loadFails(t *testing.T) {
	fewRetries(t)
	for _, code := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusServiceUnavailable} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			f := newFakeS3(t)
			f.SetHook(status(code))
			_, j := open(t, f.location, "first")
			_, first := j.Announce(t.Context(), create)
			requests := f.Requested()
			_, second := j.TakeOver(t.Context(), create)
			if !errors.As(first, new(*Error)) || second == nil || first.Error() != second.Error() {
				t.Errorf("first %v, second %v", first, second)
			}
			if f.Requested() != requests {
				t.Error("loaded again")
			}
		})
	}
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

func TestS3_writeFails(t *testing.T) {
	fewRetries(t)
	for _, code := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusServiceUnavailable} {
		for name, arrived := range map[string]bool{"": false, ", and arrived": true} {
			t.Run(http.StatusText(code)+name, func(t *testing.T) {
				f := newFakeS3(t)
				f.SetHook(func(r *http.Request, apply func()) int {
					if !isWrite(r) {
						return 0
					}
					if arrived {
						apply()
					}
					return code
				})
				_, j := open(t, f.location, "first")
				if err := j.Begin(t.Context(), create, "").Sending(); !errors.As(err, new(*Error)) {
					t.Errorf("got %v", err)
				}
				if got := stored(t, f.location, keyNames); got != nil {
					t.Errorf("kept: %q", got)
				}
			})
		}
	}
}

func TestS3_claim(t *testing.T) {
	tests := []struct {
		name string
		hook func(t *testing.T, f *fakeS3) func(r *http.Request, apply func()) int
		want string // "error": nothing may be sent
		left []string
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
			if diff := cmp.Diff(test.left, stored(t, f.location, keyNames)); diff != "" {
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
		t.Run(ahead.String(), func(t *testing.T) {
			f := newFakeS3(t)
			f.Ahead = ahead
			_, j := pendingFor(t, f.location, "first", 2*time.Second)
			ref := send(t, j, create, "").Ref()
			if off := ref.At.Sub(f.Now()); off > 2*time.Second || off < -2*time.Second {
				t.Errorf("sent at %s, now is %s", ref.At, f.Now())
			}
			start := time.Now()
			_, next := open(t, f.location, "second")
			if got := takeOver(t, next, create); got != "unknown" {
				t.Errorf("took over %s", got)
			}
			if took := time.Since(start); took < time.Second/2 || took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
		})
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
	if late := o.SentAt.Sub(ref.At.Add(-time.Hour)); late > 2*time.Second || late < -2*time.Second {
		t.Errorf("sent at %s, an hour after %s", o.SentAt, ref.At)
	}
}

// Old entries go even where the server lets nobody remove them: then they are reported.
func TestS3_age(t *testing.T) {
	for name, forbidden := range map[string]bool{"": false, "removal forbidden": true} {
		t.Run(name, func(t *testing.T) {
			f := newFakeS3(t)
			_, j := open(t, f.location, "first")
			post(t, j, create, "", "job-1")
			send(t, j, pendingCreate, "")
			old := post(t, j, otherCreate, "", "job-2").entry
			f.Lock()
			for name, object := range f.Objects {
				object.Modified = object.Modified.Add(-maxAge - time.Minute)
				if strings.Contains(name, old.id) {
					object.Modified = object.Modified.Add(2 * time.Minute) // not old enough
				}
			}
			f.Unlock()
			if forbidden {
				f.SetHook(func(r *http.Request, _ func()) int {
					return map[bool]int{true: http.StatusForbidden}[r.Method == http.MethodDelete]
				})
			}
			r := new(reports)
			_, next := openReporting(t, f.location, "second", r.add)
			var got []string
			for _, key := range []Key{create, pendingCreate, otherCreate} {
				o, err := next.Announce(t.Context(), key)
				if err != nil {
					t.Error(err)
				}
				got = append(got, jobOf(o))
			}
			if diff := cmp.Diff([]string{"none", "none", "job-2"}, got); diff != "" {
				t.Error(diff)
			}
			if want := map[bool]int{false: 1, true: 3}[forbidden]; r.count() != want {
				t.Errorf("%d reports, want %d: %v", r.count(), want, r.errs)
			}
		})
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
