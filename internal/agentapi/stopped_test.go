// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package agentapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// A response that arrives while the process is stopped, as by Ctrl-Z, counts even if the
// request timeout has expired when the process continues.
func TestCreateJob_stopped(t *testing.T) {
	const service = "AGENTAPI_TEST_STOPPED"
	t.Parallel()
	if base := os.Getenv(service); base != "" {
		c := newClient(t, base, func(c *Config) { c.RequestTimeout = time.Second })
		if _, err := c.CreateJob(t.Context(), "p", "x", nil); err != nil {
			t.Error(err)
		}
		return
	}
	started, answered := make(chan *os.Process, 1), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		child := <-started
		_ = child.Signal(syscall.SIGSTOP)
		time.Sleep(100 * time.Millisecond)
		_, _ = io.WriteString(w, record)
		time.AfterFunc(2*time.Second, func() { _ = child.Signal(syscall.SIGCONT) })
		close(answered)
	}))
	defer s.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), service+"="+s.URL)
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started <- cmd.Process
	text, _ := io.ReadAll(output)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	select {
	case <-answered:
	default:
		t.Error("no request came")
	}
}
