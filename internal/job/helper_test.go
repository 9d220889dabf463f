// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

type (
	attrs   = fakecli.Attrs
	unknown = fakecli.Unknown
)

// apply is a whole apply in a process of its own.
func apply(t *testing.T, c *fakecli.CLI, run cli.Run, config, job attrs) []*tfprotov6.Diagnostic {
	t.Helper()
	process := harness.Process(run)
	c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: process}), config)
	return c.Run(t.Context(), job)
}

// byPrompt lets a job go as its prompt says.
func byPrompt(prompt string, _ int) simulator.Script {
	switch {
	case strings.Contains(prompt, "fail"):
		return simulator.Script{Duration: 100 * time.Millisecond, Status: "failed"}
	case strings.Contains(prompt, "slow"):
		return simulator.Script{Duration: time.Hour}
	default:
		return simulator.Script{Duration: time.Second}
	}
}

// ended is a job that somebody else has started and that is over.
func ended(s *harness.Service) string {
	id := s.Create(harness.Project, "from elsewhere").ID
	s.SetStatus(id, "completed")
	return id
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

// changeEntry replaces a text in the only entry of a journal, as whoever can write there could.
func changeEntry(t *testing.T, folder, from, to string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(folder, "*", "*.json"))
	if len(files) != 1 {
		t.Fatalf("entries: %q, want one", files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(text), from) {
		t.Fatalf("%v, or no %s in %s", err, from, text)
	}
	if err = os.WriteFile(files[0], []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}
