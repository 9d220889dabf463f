// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package place

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

// A check shows all that is missing in one run.
func TestCheck(t *testing.T) {
	f := fakes3.New(t)
	l := inBucket(t, f.URL).at
	const (
		all    = "ok ok ok ok"
		noRest = "A role that only plans needs no right to write."
	)
	list, read, write := l.cloud.Grant("list", ""), l.cloud.Grant("read", l.Prefix), l.cloud.Grant("write", l.Prefix)
	for what, test := range map[string]struct {
		denied string // ops, and missing: a read of what does not exist
		server func(*fakes3.Server)
		twice  bool
		steps  string
		says   []string
	}{
		"all is well":     {steps: all, says: []string{"All is well"}},
		"an earlier one":  {twice: true, steps: all, says: []string{"check/check.json is there from an earlier check", "All is well"}},
		"cannot list":     {denied: "list", steps: all, says: []string{list, "so plans make a request for each name", "All is well"}},
		"can write only":  {denied: "list missing read", steps: "ok ok FAILED FAILED", says: []string{read, write}},
		"cannot read":     {denied: "read", steps: "ok ok FAILED FAILED", says: []string{read, write}},
		"cannot write":    {denied: "write", steps: "ok FAILED ok -", says: []string{write, noRest}},
		"can read only":   {denied: "list missing write", steps: "ok FAILED FAILED -", says: []string{write, "perhaps only because it does not exist"}},
		"can nothing":     {denied: "list read write", steps: "ok FAILED FAILED -", says: []string{"s3:ListBucket", "s3:GetObject", "s3:PutObject"}},
		"other responses": {denied: "proxy", steps: "FAILED FAILED FAILED -"},
		"ignores If-None-Match": {
			server: func(f *fakes3.Server) { f.IgnoreIfNoneMatch = true }, steps: "ok ok ok FAILED",
			says: []string{"ignores the condition of a write (If-None-Match)", "check/_conditions.json"},
		},
		"ignores If-Match": {
			server: func(f *fakes3.Server) { f.IgnoreIfMatch = true }, steps: "ok ok ok FAILED",
			says: []string{"ignores the condition of a write (If-Match)", "check/_conditions.json"},
		},
	} {
		f.Clear()
		f.IgnoreIfNoneMatch, f.IgnoreIfMatch = false, false
		if test.server != nil {
			test.server(f)
		}
		f.SetHook(func(r *http.Request, _ func()) int {
			f.Lock()
			defer f.Unlock()
			_, exists := f.Objects[strings.TrimPrefix(r.URL.Path, "/bucket/")]
			switch op := fakes3.Op(r); {
			case strings.Contains(test.denied, op), op == "read" && !exists && strings.Contains(test.denied, "missing"):
				return http.StatusForbidden
			case test.denied == "proxy":
				return http.StatusOK
			}
			return 0
		})
		var printed strings.Builder
		err := Check(t.Context(), &printed, l)
		if test.twice {
			printed.Reset()
			err = Check(t.Context(), &printed, l)
		}
		if steps := stepsOf(printed.String()); steps != test.steps || (err == nil) != (test.steps == all) {
			t.Errorf("%s: %v (-want +got):\n%s\n%s", what, err, cmp.Diff(test.steps, steps), &printed)
		}
		for _, text := range test.says {
			if !strings.Contains(printed.String(), text) {
				t.Errorf("%s: does not say %s:\n%s", what, text, &printed)
			}
		}
		if says := strings.Contains(printed.String(), noRest); says != slices.Contains(test.says, noRest) {
			t.Errorf("%s:\n%s", what, &printed)
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

// hanging is a store whose writes do not end.
type hanging struct{ store.Store }

func (hanging) Put(ctx context.Context, _ string, _ []byte, _ store.Version) (store.Version, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// A step that hangs ends after ten seconds. Ctrl-C ends the check.
func TestCheck_hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		start := time.Now()
		var printed strings.Builder
		err := check(ctx, &printed, hanging{store.Discard()})
		if took := time.Since(start); err == nil || stepsOf(printed.String()) != "ok FAILED ok -" || took != checkLimit {
			t.Errorf("%v after %s\n%s", err, took, &printed)
		}
		time.AfterFunc(time.Second, interrupt)
		if err := check(ctx, &printed, hanging{store.Discard()}); err == nil || !strings.HasSuffix(printed.String(), "Interrupted.\n") {
			t.Errorf("%v\n%s", err, &printed)
		}
	})
}
