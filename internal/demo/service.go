// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
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
	stop     func() error
}

func startService(ctx context.Context) (*service, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &service{
		url: "http://" + listener.Addr().String(),
		// A canary: wherever it turns up, the real key would.
		key: "canary_" + strings.ToLower(rand.Text()),
	}
	s.Server = simulator.New(simulator.Options{Key: s.key, Script: func(_, _ string, turn int) simulator.Script {
		return simulator.Script{Duration: turnDuration(turn)}
	}})
	server := &http.Server{Handler: s.Server, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	s.stop = func() error {
		err := server.Close()
		if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
			err = errors.Join(err, failed)
		}
		return err
	}
	return s, nil
}

// environment is what points the provider at the service.
func (s *service) environment() []string {
	return []string{"AGENT_BASE_URL=" + s.url, "AGENT_PROJECT_ID=" + project, "AGENT_ADMIN_KEY=" + s.key}
}

// awaitWait returns once the provider has sent a message after the counts given
// and has begun to look for the end of the job.
func (s *service) awaitWait(ctx context.Context, before simulator.Counts) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	gets := -1
	for {
		now := s.Counts()
		switch {
		case gets >= 0 && now.Get > gets:
			return nil
		case gets < 0 && now.Message > before.Message:
			gets = now.Get
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
