// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// Who can write to the journal does not control the terminal.
//
// Red without: either escape.Printable in takeover.go.
func TestTakeOver_idFromJournalIsEscaped(t *testing.T) {
	s := harness.NewService(t, nil)
	folder := filepath.Join(t.TempDir(), "journal")
	config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": folder}})
	c := fakecli.New(t, config)
	state, private := c.State, c.Private
	job := attrs{"prompt": "A", "wait": attrs{"enabled": false}}
	apply(t, c, "first", config, job)
	entries, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(entries) != 1 {
		t.Fatalf("entries %q, %v, want one", entries, err)
	}
	text, err := os.ReadFile(entries[0])
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte(`"job":"`), []byte(`"job":"\u001b[31m`))
	if err := os.WriteFile(entries[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	c.State, c.Private = state, private
	got := fakecli.Text(apply(t, c, "second", config, job))
	harness.Contains(t, got, `started job \u001b[31m`)
	if strings.Contains(got, "\x1b") {
		t.Errorf("not escaped: %q", got)
	}
	s.Sent(t, 1, 0)
}
