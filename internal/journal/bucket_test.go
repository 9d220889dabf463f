// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

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
	if err := c.Problem(); err != nil {
		t.Error(err)
	}
}

// Times are those of the server, so that runners whose clocks differ agree.
func TestS3_X15_clock(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		f, l := newFakeS3(t)
		f.Ahead = ahead
		first := open(t, l, "first")
		wantTakeOver(t, first, create, "none") // as before each request
		ref := send(t, first, create, "").Ref()
		if off := time.UnixMilli(ref.At).Sub(f.Now()); off.Abs() > 2*time.Second {
			t.Errorf("sent %s from the server's time", off)
		}
		f.Ahead += time.Minute
		wantTakeOver(t, open(t, l, "second"), create, "unknown")
	}
}

// Foreign objects under the prefix are left alone, damaged ones too.
func TestS3_foreignObjects(t *testing.T) {
	f, l := newFakeS3(t)
	post(t, open(t, l, "first"), create, "", "job-1")
	f.Lock()
	for _, name := range []string{"a/prefix/state.json", "a/prefix/deeper/" + newID() + suffix, "a/" + newID() + suffix} {
		f.Objects[name] = &fakes3.Object{Text: []byte("{}"), Modified: f.Now().Add(-2 * maxAge)}
	}
	f.Objects["a/prefix/"+newID()+suffix] = &fakes3.Object{Text: []byte("{}"), Modified: f.Now()}
	f.Unlock()
	j := open(t, l, "second")
	wantTakeOver(t, j, create, "job-1")
	if err := wantNotices(t, j, 1); !errors.Is(err, errDamaged) {
		t.Error(err)
	}
	if len(f.Objects) != 5 {
		t.Errorf("%d objects are left", len(f.Objects))
	}
}
