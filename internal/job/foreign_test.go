// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"cmp"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// Text that clears the screen, changes colors and reverses the line, and what is shown
// of it.
const (
	foreign = "a\x1b[2J\u009b31m\u202eb"
	shown   = `a\u001b[2J\u009b31m\u202eb`
)

// Whoever writes to the service, to the journal or to a bucket does not control the
// terminal. The fake CLI checks each diagnostic too.
//
// Red without: Printable in newError, decodeJob, apply, jobTakenOver and unreadable; All in Sentence.
func TestForeignText_isEscaped(t *testing.T) {
	text, _ := json.Marshal(foreign)
	quoted := string(text)
	answer := func(kind simulator.Kind, status int, body string) simulator.Fault {
		return simulator.Fault{Kind: kind, Status: status, Body: body, Times: -1}
	}
	created := answer(simulator.KindCreate, 201, `{"id":"job_1","status":"active"}`)
	for name, test := range map[string]struct {
		faults []simulator.Fault
		entry  string // the field of an earlier run's entry that somebody has changed
		bucket string // what the journal's bucket responds
		shown  string // of foreign, if not all
	}{
		"error of the service":        {faults: []simulator.Fault{answer(simulator.KindCreate, 400, `{"error":`+quoted+`}`)}},
		"plain error of the service":  {faults: []simulator.Fault{answer(simulator.KindCreate, 400, foreign)}},
		"error of an unknown outcome": {faults: []simulator.Fault{answer(simulator.KindCreate, 500, foreign)}},
		"id":                          {faults: []simulator.Fault{answer(simulator.KindCreate, 201, `{"id":`+quoted+`}`)}},
		"link":                        {faults: []simulator.Fault{answer(simulator.KindCreate, 201, `{"id":"job_1","prLink":`+quoted+`}`), answer(simulator.KindGet, 200, `{"id":"job_1","status":"completed","prLink":`+quoted+`}`)}},
		"status":                      {faults: []simulator.Fault{created, answer(simulator.KindGet, 200, `{"id":"job_1","status":`+quoted+`}`)}},
		"error of a poll":             {faults: []simulator.Fault{created, answer(simulator.KindGet, 401, `{"error":`+quoted+`}`)}},
		"job of an entry":             {entry: "job"},
		"project of an entry":         {entry: "project"},
		"project of a lost job":       {entry: "project", faults: []simulator.Fault{answer(simulator.KindGet, 404, `{"error":"not found"}`)}},
		"bucket, XML":                 {bucket: "<Error><Code>AccessDenied</Code><Message>\u009b31m\u202eb</Message></Error>", shown: `\u009b31m\u202eb`},
		"bucket, no XML":              {bucket: foreign},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.NewService(t, nil)
			folder := filepath.Join(t.TempDir(), "journal")
			url := folder
			if test.bucket != "" {
				url = refusingBucket(t, test.bucket)
			}
			config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": url}})
			job := attrs{"prompt": "A", "timeouts": attrs{"create": "2s"}}
			c := fakecli.New(t, config)
			if test.entry != "" {
				apply(t, c, "first", config, job)
				c.Forget()
				changeEntries(t, folder, test.entry)
			}
			s.Inject(test.faults...)
			diags := apply(t, c, "last", config, job)
			harness.Contains(t, fakecli.Text(diags), cmp.Or(test.shown, shown))
		})
	}
}

// refusingBucket is the URL of a bucket that responds 400.
func refusingBucket(t *testing.T, body string) string {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return "s3://bucket/a?region=us-east-1&endpoint=" + server.URL
}

// changeEntries puts foreign into a field of each entry.
func changeEntries(t *testing.T, folder, field string) {
	t.Helper()
	quoted, _ := json.Marshal(foreign)
	value := regexp.MustCompile(`"` + field + `":"[^"]*"`)
	changed := false
	err := filepath.WalkDir(folder, func(name string, file fs.DirEntry, err error) error {
		if err != nil || file.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		changed = changed || value.Match(text)
		return os.WriteFile(name, value.ReplaceAll(text, []byte(`"`+field+`":`+string(quoted))), 0o600)
	})
	if err != nil || !changed {
		t.Fatalf("no entry with %s, or %v", field, err)
	}
}
