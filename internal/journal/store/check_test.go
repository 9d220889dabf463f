// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

// A check shows all that is missing in one run.
func TestCheck(t *testing.T) {
	f := fakes3.New(t)
	l := inBucket(t, f.URL).at
	const (
		all    = "ok ok ok ok ok ok ok ok ok ok"
		noRest = "A role that only plans needs no more than listing and reading, which work."
	)
	for what, test := range map[string]struct {
		denied  string // methods, LIST, and MISSING: a GET of what does not exist
		ignored string // methods that seem to work, or OVER: overwriting
		ahead   time.Duration
		steps   string
		says    []string
	}{
		"all is well": {steps: all, says: []string{"All is well"}},
		"cannot list": {denied: "LIST", steps: "FAILED ok ok ok ok - ok - - ok", says: []string{l.cloud.grant("list", "")}},
		"cannot list, nor know what is missing": {
			denied: "LIST MISSING", steps: "FAILED FAILED ok ok ok - ok - - ok", says: []string{"perhaps only because"},
		},
		"cannot read":            {denied: "GET", steps: "ok FAILED ok ok - ok ok ok - ok", says: []string{l.cloud.grant("read", l.Prefix)}},
		"cannot write":           {denied: "PUT", steps: "ok ok FAILED - - - ok ok ok ok", says: []string{l.cloud.grant("write", l.Prefix), noRest}},
		"cannot remove":          {denied: "DELETE", steps: "ok ok ok ok ok ok FAILED - - -", says: []string{l.cloud.grant("remove", l.Prefix)}},
		"can nothing":            {denied: "LIST GET PUT DELETE", steps: "FAILED FAILED FAILED - - - FAILED - - -", says: []string{"s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject"}},
		"plans only":             {denied: "PUT DELETE", steps: "ok ok FAILED - - - FAILED - - -", says: []string{noRest}},
		"writes do not show":     {ignored: "PUT", steps: "ok ok ok ok FAILED FAILED ok - - ok", says: []string{"is not there", "is not listed"}},
		"overwrites do not show": {ignored: "OVER", steps: "ok ok ok ok FAILED ok ok ok - ok", says: []string{"is still there"}},
		"retention":              {ignored: "DELETE", steps: "ok ok ok ok ok ok ok FAILED - ok", says: []string{"what was removed is still listed"}},
		"clock an hour on":       {ahead: time.Hour, steps: all, says: []string{"clock and this machine's are ", "All is well"}},
	} {
		f.Clear()
		f.Ahead = test.ahead
		f.SetHook(func(r *http.Request, _ func()) int {
			op := r.Method
			if r.URL.Query().Has("list-type") {
				op = "LIST"
			}
			f.Lock()
			defer f.Unlock()
			if _, exists := f.Objects[strings.TrimPrefix(r.URL.Path, "/bucket/")]; op == "GET" && !exists && test.denied == "LIST MISSING" {
				return http.StatusForbidden
			}
			switch {
			case strings.Contains(test.denied, op):
				return http.StatusForbidden
			case test.ignored == op, test.ignored == "OVER" && op == "PUT" && len(f.Objects) > 0:
				return http.StatusOK
			}
			return 0
		})
		var printed strings.Builder
		err := Check(t.Context(), &printed, l)
		if steps := stepsOf(printed.String()); steps != test.steps || (err == nil) != (test.steps == all) {
			t.Errorf("%s: %v (-want +got):\n%s\n%s", what, err, cmp.Diff(test.steps, steps), &printed)
		}
		for _, text := range test.says {
			if !strings.Contains(printed.String(), text) {
				t.Errorf("%s: does not say %s:\n%s", what, text, &printed)
			}
		}
		if left := len(f.Objects); (left > 0) != (strings.Contains(printed.String(), "could not remove") || test.ignored == "DELETE") {
			t.Errorf("%s: %d objects are left:\n%s", what, left, &printed)
		}
	}
}

func stepsOf(printed string) string {
	var steps []string
	for _, found := range regexp.MustCompile(`(?m)^(ok|FAILED|-) `).FindAllStringSubmatch(printed, -1) {
		steps = append(steps, found[1])
	}
	return strings.Join(steps, " ")
}

// hanging is a store that loses an entry's removal, or all, in silence.
type hanging struct {
	Store

	write, remove func(ctx context.Context) error
}

func (h hanging) Write(ctx context.Context, _ Name, _ *Entry) error { return h.write(ctx) }
func (h hanging) Remove(ctx context.Context, _ Name) error          { return h.remove(ctx) }

// A step that hangs ends after ten seconds. Ctrl-C ends the check, and what may have been written is removed nevertheless.
func TestCheck_hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		var removedAfter []time.Duration
		start := time.Now()
		s := hanging{
			Store: Discard(),
			write: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			remove: func(ctx context.Context) error {
				if ctx.Err() == nil {
					removedAfter = append(removedAfter, time.Since(start))
				}
				return ctx.Err()
			},
		}
		var printed strings.Builder
		if err := check(ctx, &printed, s); err == nil || stepsOf(printed.String()) != "ok ok FAILED - - - ok ok ok ok" {
			t.Errorf("%v\n%s", err, &printed)
		}
		time.AfterFunc(time.Second, interrupt)
		if err := check(ctx, &printed, s); err == nil || !strings.Contains(printed.String(), "Interrupted.") {
			t.Errorf("%v\n%s", err, &printed)
		}
		if diff := cmp.Diff([]time.Duration{checkLimit, checkLimit, checkLimit + time.Second}, removedAfter); diff != "" {
			t.Errorf("removed (-want +got):\n%s\n%s", diff, &printed)
		}
	})
}
