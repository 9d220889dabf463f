// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"encoding/json"
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

// Whoever writes to the journal or to a bucket does not control the terminal. The fake CLI checks
// each diagnostic too. Texts of the service: TestEveryTextIsSafeInTheState, TestNewError_detail.
//
// Red without: Printable in jobsOf, TakenOver and unreadable; All in Sentence.
func TestForeignText_isEscaped(t *testing.T) {
	quoted, _ := json.Marshal(foreign)
	for name, test := range map[string]struct {
		field  string // of an earlier run's entry that somebody has changed
		status int    // of the response to a GET, if not the record
	}{
		"job of an entry":       {field: "job"},
		"project of an entry":   {field: "project"},
		"project of a lost job": {field: "project", status: 404},
	} {
		t.Run(name, func(t *testing.T) {
			s, folder := harness.NewService(t, nil), t.TempDir()
			config, job := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": folder}}), attrs{"prompt": "A"}
			c := fakecli.New(t, config)
			apply(t, c, "first", config, job)
			c.Forget()
			value := map[string]string{"job": s.OnlyJob(t).ID, "project": harness.Project}[test.field]
			changeEntry(t, folder, `"`+test.field+`":"`+value+`"`, `"`+test.field+`":`+string(quoted))
			if test.status != 0 {
				s.Inject(simulator.Fault{Kind: simulator.KindGet, Status: test.status})
			}
			harness.Contains(t, fakecli.Text(apply(t, c, "last", config, job)), shown)
		})
	}
	t.Run("bucket", func(t *testing.T) {
		config := fakecli.With(harness.NewService(t, nil).Attrs(), attrs{"journal": attrs{"url": refusingBucket(t, foreign)}})
		diags := apply(t, fakecli.New(t, config), "run", config, attrs{"prompt": "A"})
		harness.Contains(t, fakecli.Text(diags), shown)
	})
}
