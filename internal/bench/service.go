// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

const key = "mint_bench"

// service is the simulator in a process of its own, so that its work is not
// counted as ours.
type service struct {
	cmd *exec.Cmd
	url string
	old map[string]bool // jobs from before the last reset
}

func startService(ctx context.Context, dir string) (*service, error) {
	executable := filepath.Join(dir, "simulator")
	build := exec.CommandContext(ctx, "go", "build", "-o", executable, "github.com/agentjobs/terraform-provider-agent/internal/simulator/cmd/simulator")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the simulator: %w\n%s", err, text)
	}
	s := &service{cmd: exec.CommandContext(ctx, executable, "-listen", "127.0.0.1:0", "-key", key), old: map[string]bool{}}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "export AGENT_BASE_URL="); ok {
			s.url = url
		}
		if strings.HasPrefix(lines.Text(), "export AGENT_PROJECT_ID=") {
			return s, nil
		}
	}
	s.stop()
	return nil, fmt.Errorf("the simulator did not start: %w", lines.Err())
}

func (s *service) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

func (s *service) env() []string {
	return []string{"AGENT_BASE_URL=" + s.url, "AGENT_ADMIN_KEY=" + key, "AGENT_PROJECT_ID=proj_bench"}
}

// reset forgets what was seen so far.
func (s *service) reset(ctx context.Context) error {
	jobs, _, err := s.seen(ctx)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		s.old[j.ID] = true
	}
	return s.control(ctx, http.MethodPost, "reset", nil)
}

// seen are the jobs and requests since the last reset.
func (s *service) seen(ctx context.Context) (jobs []simulator.Job, counts simulator.Counts, err error) {
	var all []simulator.Job
	if err := s.control(ctx, http.MethodGet, "jobs", &all); err != nil {
		return nil, counts, err
	}
	for _, j := range all {
		if !s.old[j.ID] {
			jobs = append(jobs, j)
		}
	}
	return jobs, counts, s.control(ctx, http.MethodGet, "counts", &counts)
}

func (s *service) control(ctx context.Context, method, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, s.url+"/_simulator/"+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode >= 300 {
		return fmt.Errorf("simulator: %s", res.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(into)
}
