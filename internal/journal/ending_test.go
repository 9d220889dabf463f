// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStores_endings(t *testing.T) {
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
			c := send(t, j, key, "")
			c.Withdrawn()
			c.End()
			p.Close(t.Context())
		}, "none", "none"},
		{"unknown, reported", func(t *testing.T, p *Process, j *Journal) {
			c := send(t, j, key, "")
			c.Unknown()
			c.End()
			p.Close(t.Context())
		}, "none", "none"},
		{"unknown, stopped", func(t *testing.T, p *Process, j *Journal) {
			c := send(t, j, key, "")
			p.Stopping()
			c.Unknown()
			c.End()
			p.Close(t.Context())
		}, "unknown", "unknown"},
		{"unknown, the connection is gone", func(t *testing.T, p *Process, j *Journal) {
			ctx, cancel := context.WithCancel(t.Context())
			c := j.Begin(ctx, key, "")
			if err := c.Sending(); err != nil {
				t.Fatal(err)
			}
			cancel()
			c.Unknown()
			c.End()
			p.Close(t.Context())
		}, "unknown", "unknown"},
		{"the connection is gone after another call had no effect", func(t *testing.T, p *Process, j *Journal) {
			post(t, j, key, "", "job-1")
			ctx, cancel := context.WithCancel(t.Context())
			c := j.Begin(ctx, otherCreate, "")
			if err := c.Sending(); err != nil {
				t.Fatal(err)
			}
			c.Withdrawn()
			cancel()
			c.End()
			p.Close(t.Context())
		}, "none", "job-1"},
		{"another call has not returned", func(t *testing.T, p *Process, j *Journal) {
			post(t, j, key, "", "job-1")
			send(t, j, otherCreate, "")
			p.Close(t.Context())
		}, "job-1", "job-1"},
		{"killed", func(t *testing.T, _ *Process, j *Journal) {
			post(t, j, key, "", "job-1")
			crash(j)
		}, "job-1", "job-1"},
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
