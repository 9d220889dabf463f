// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflogtest"
	"github.com/hashicorp/terraform-plugin-log/tfsdklogtest"

	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// module is some resources of one provider configuration, applied together, and their service.
type module struct {
	*testing.T
	*faultserver.Server
	random     *rand.Rand // of the goroutine that runs the module
	sum        *tally
	sim        *simulator.Server
	users      []*user
	faultsOver atomic.Bool // every job must finish
	run        *cliRun     // the current one
	start      time.Time
	logged     atomic.Bool
}

// cliRun is one run of the CLI.
type cliRun struct {
	*fakecli.CLI // without a resource
	mu           sync.Mutex
	stopped      time.Time // at the first Ctrl-C
}

// stop is a Ctrl-C.
func (r *cliRun) stop() {
	r.mu.Lock()
	if r.stopped.IsZero() {
		r.stopped = time.Now()
	}
	r.mu.Unlock()
	r.Stop()
}

func (r *cliRun) stoppedAt() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

func newModule(t *testing.T, random *rand.Rand, sum *tally) *module {
	m := &module{T: t, random: random, sum: sum, start: time.Now()}
	m.sim = harness.NewSimulator(func(prompt string, turn int) simulator.Script { return m.userOf(prompt).script(turn) })
	m.Server = faultserver.New(t, m.sim, faultserver.Options{InMemory: true})
	m.Always(faultserver.Create, func(x *faultserver.Exchange) { m.post(faultserver.Create, x) })
	m.Always(faultserver.Message, func(x *faultserver.Exchange) { m.post(faultserver.Message, x) })
	m.Always(faultserver.Get, func(x *faultserver.Exchange) {
		if u := m.userOfPath(x.Request.URL.Path); u != nil {
			u.respondToGet(x)
		}
	})
	for n := range 2 + random.IntN(5) {
		m.users = append(m.users, newUser(m, n))
	}
	return m
}

// play lets the users apply under faults, and then without, until all is done.
func (m *module) play() {
	for range 3 + m.random.IntN(4) {
		m.apply()
	}
	m.faultsOver.Store(true)
	for range 12 {
		time.Sleep(time.Minute) // the service has its records in order again
		m.apply()
		if !slices.ContainsFunc(m.users, func(u *user) bool { return !u.done() }) {
			break
		}
	}
	for _, u := range m.users {
		u.checkEnd()
	}
	if !m.logged.Load() {
		m.Error("nothing was logged")
	}
}

// apply is one "terraform apply" of all resources.
func (m *module) apply() {
	m.run = &cliRun{CLI: &fakecli.CLI{T: m.T}}
	config := attrs{"base_url": m.URL, "admin_key": harness.CanaryKey, "project_id": harness.Project}
	if diags := m.run.ConnectTo(m.context(nil), provider.New("test", provider.Options{Dial: m.dial}), config); len(diags) > 0 {
		m.Error(fakecli.Text(diags))
	}
	m.each((*user).plan)
	if !m.faultsOver.Load() && m.random.IntN(6) == 0 {
		m.sum.fault("interrupt at any time (X02)")
		defer time.AfterFunc(moment(m.random), m.run.stop).Stop()
	}
	m.each((*user).apply)
	synctest.Wait() // the service has noted all of its responses
	for _, u := range m.users {
		u.checkStop()
	}
}

// moment is a time into a run: its first second is as likely as the first minute.
func moment(random *rand.Rand) time.Duration {
	return time.Millisecond << random.IntN(18) * time.Duration(1+random.IntN(10)) / 5
}

func (m *module) each(do func(*user)) {
	var all sync.WaitGroup
	for _, u := range m.users {
		all.Go(func() { do(u) })
	}
	all.Wait()
}

type userKey struct{}

func (m *module) context(u *user) context.Context {
	ctx := tflogtest.RootLogger(tfsdklogtest.RootLogger(m.Context(), m), m)
	return context.WithValue(ctx, userKey{}, u)
}

// keyPart is enough of the key to be its beginning and nothing else.
var keyPart = []byte("mint_canary-")

// Write searches for the key in all that is logged, shown and stored.
func (m *module) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("called the agent service")) {
		m.logged.Store(true)
	}
	if bytes.Contains(p, keyPart) {
		m.sum.number(keyBytes, 1)
		m.Errorf("the key: %s", p)
	}
	return len(p), nil
}
