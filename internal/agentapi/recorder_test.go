// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorder writes down what it is told.
type recorder struct {
	refuses error
	told    []string
}

func (r *recorder) Sending() error {
	r.told = append(r.told, "sending")
	return r.refuses
}
func (r *recorder) Answered(id string) { r.told = append(r.told, "answered "+id) }
func (r *recorder) Withdrawn()         { r.told = append(r.told, "withdrawn") }
func (r *recorder) Unknown()           { r.told = append(r.told, "unknown") }

func TestRecorderThatRefuses(t *testing.T) {
	t.Parallel()
	f := &fake{answer: accept}
	c := newFakeClient(t, f)
	r := &recorder{refuses: errors.New("not now")}
	for range 2 * gateWidth { // a turn that was not given back would be missed
		if _, err := c.CreateJob(t.Context(), "p", "x", r); !errors.Is(err, ErrNotSent) || !errors.Is(err, r.refuses) {
			t.Fatalf("%v, want ErrNotSent and the recorder's error", err)
		}
	}
	r.told, r.refuses = r.told[:2], nil
	if _, err := c.CreateJob(t.Context(), "p", "x", r); err != nil || f.posts != 1 {
		t.Errorf("%v and %d POSTs, want one", err, f.posts)
	}
	if diff := cmp.Diff([]string{"sending", "withdrawn", "sending", "answered job_1"}, r.told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
