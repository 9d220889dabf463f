// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package demo

import (
	"context"
	"crypto/rand"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

const project = "proj_demo"

// turnDuration is how long the job takes for its first prompt (turn 0) and for
// each message: the first long enough for "Still creating…", which is shown
// every ten seconds, the last long enough to be interrupted and resumed.
func turnDuration(turn int) time.Duration {
	if turn == 1 {
		return 3 * time.Second
	}
	return 12 * time.Second
}

// service is the simulated service on a loopback address.
type service struct {
	*simulator.Server
	url, key string
	stop     func()
}

func startService() *service {
	// A canary: wherever it turns up, the real key would.
	key := "canary_" + strings.ToLower(rand.Text())
	service := &service{key: key, Server: simulator.New(simulator.Options{Key: key, Script: func(_ string, turn int) simulator.Script {
		return simulator.Script{Duration: turnDuration(turn)}
	}})}
	server := httptest.NewServer(service)
	service.url, service.stop = server.URL, server.Close
	return service
}

// environment is what points the provider at the service.
func (s *service) environment() []string {
	return []string{"AGENT_BASE_URL=" + s.url, "AGENT_PROJECT_ID=" + project, "AGENT_ADMIN_KEY=" + s.key}
}

// awaitWait returns once the provider has sent a message after the counts given
// and has begun to look for the end of the job.
func (s *service) awaitWait(ctx context.Context, before simulator.Counts) error {
	for gets := -1; ; {
		now := s.Counts()
		switch {
		case gets >= 0 && now.Get > gets:
			return nil
		case gets < 0 && now.Message > before.Message:
			gets = now.Get
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
