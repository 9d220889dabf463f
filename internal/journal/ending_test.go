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
	type end struct {
		*testing.T
		p      *Process
		j      *Journal
		c      *Call  // that is about to POST
		cancel func() // ends its context
	}
	answered := func(e end) { e.c.Answered("job-1") }
	tests := []struct {
		name             string
		end              func(e end)
		byDefault, named string
	}{
		{"undisturbed", answered, "none", "job-1"},
		{"stopped before the response", func(e end) { e.p.Stopping(); answered(e) }, "job-1", "job-1"},
		{"the connection is gone before the response", func(e end) { e.cancel(); answered(e) }, "job-1", "job-1"},
		{"withdrawn", func(e end) { e.c.Withdrawn() }, "none", "none"},
		{"unknown, reported", func(e end) { e.c.Unknown() }, "none", "none"},
		{"unknown, stopped", func(e end) { e.p.Stopping(); e.c.Unknown() }, "unknown", "unknown"},
		{"unknown, the connection is gone", func(e end) { e.cancel(); e.c.Unknown() }, "unknown", "unknown"},
		{"the connection is gone after another call had no effect", func(e end) {
			post(e.T, e.j, key, "", "job-1")
			e.c.Withdrawn()
			e.cancel()
		}, "none", "job-1"},
		{"another call has not returned", func(e end) { answered(e); send(e.T, e.j, otherCreate, "") }, "job-1", "job-1"},
		{"killed", func(e end) { answered(e); crash(e.j) }, "job-1", "job-1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			places(t, func(t *testing.T, l Location) {
				p, j := open(t, l, "first")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := j.Begin(ctx, key, "")
				if err := c.Sending(); err != nil {
					t.Fatal(err)
				}
				if test.end(end{t, p, j, c, cancel}); test.name != "killed" {
					c.End()
					p.Close(t.Context())
				}
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
