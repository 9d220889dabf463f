// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// places are the stores that every rule is tried in.
func places(t *testing.T, try func(t *testing.T, l Location)) {
	t.Helper()
	t.Run("default folder", func(t *testing.T) { try(t, Location{Folder: filepath.Join(t.TempDir(), "agent")}) })
	t.Run("named folder", func(t *testing.T) { try(t, Location{Named: true, Folder: filepath.Join(t.TempDir(), "agent")}) })
	t.Run("S3 bucket", func(t *testing.T) {
		url := os.Getenv("AGENT_TEST_S3")
		if url == "" {
			t.Skip("AGENT_TEST_S3 is not set: make test-s3 runs this with a real S3 server")
		}
		l, err := ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		l.Prefix = newID() + "/"
		try(t, l)
	})
}

// run opens the journal as a process of its own in a run.
func open(t *testing.T, l Location, run Run) (*Process, *Journal) {
	t.Helper()
	p := NewProcess(run, func(err error) { t.Errorf("reported: %v", err) })
	j, err := p.Open(Options{Location: l, RequestTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return p, j
}

// post makes a call whose POST starts a job.
func post(t *testing.T, j *Journal, key Key, forJob, jobID string) *Call {
	t.Helper()
	c := j.Begin(t.Context(), key, forJob)
	if err := c.Sending(); err != nil {
		t.Fatal(err)
	}
	c.Answered(jobID)
	c.End()
	return c
}

// takeOver returns the job that a run takes over; "none" without one.
func takeOver(t *testing.T, j *Journal, key Key) string {
	t.Helper()
	o, err := j.TakeOver(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case o == nil:
		return "none"
	case o.JobID == "":
		return "unknown"
	}
	return o.JobID
}

func TestEndings(t *testing.T) {
	key := CreateKey("a prompt")
	tests := []struct {
		name             string
		end              func(t *testing.T, p *Process, j *Journal)
		byDefault, named string
	}{
		{"undisturbed", func(t *testing.T, p *Process, j *Journal) {
			post(t, j, key, "", "job-1")
			p.Close(t.Context())
		}, "none", "job-1"},
		{"stopped before the response", func(t *testing.T, p *Process, j *Journal) {
			p.Stopping()
			post(t, j, key, "", "job-1")
			p.Close(t.Context())
		}, "job-1", "job-1"},
		{"the connection is gone before the response", func(t *testing.T, p *Process, j *Journal) {
			ctx, cancel := context.WithCancel(t.Context())
			c := j.Begin(ctx, key, "")
			if err := c.Sending(); err != nil {
				t.Fatal(err)
			}
			cancel()
			c.Answered("job-1")
			c.End()
			p.Close(t.Context())
		}, "job-1", "job-1"},
		{"withdrawn", func(t *testing.T, p *Process, j *Journal) {
			c := j.Begin(t.Context(), key, "")
			if err := c.Sending(); err != nil {
				t.Fatal(err)
			}
			c.Withdrawn()
			c.End()
			p.Close(t.Context())
		}, "none", "none"},
		{"unknown, reported", func(t *testing.T, p *Process, j *Journal) {
			c := j.Begin(t.Context(), key, "")
			if err := c.Sending(); err != nil {
				t.Fatal(err)
			}
			c.Unknown()
			c.End()
			p.Close(t.Context())
		}, "none", "none"},
		{"unknown, stopped", func(t *testing.T, p *Process, j *Journal) {
			c := j.Begin(t.Context(), key, "")
			if err := c.Sending(); err != nil {
				t.Fatal(err)
			}
			p.Stopping()
			c.Unknown()
			c.End()
			p.Close(t.Context())
		}, "unknown", "unknown"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			places(t, func(t *testing.T, l Location) {
				p, j := open(t, l, "first")
				test.end(t, p, j)
				want := test.byDefault
				if l.Named {
					want = test.named
				}
				_, next := open(t, l, "second")
				got := []string{takeOver(t, next, key), takeOver(t, next, key)}
				if diff := cmp.Diff([]string{want, "none"}, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
