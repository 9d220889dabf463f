// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"context"
	"math/rand/v2"
	"net/http"
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

// rootModule is some jobs of one provider configuration, applied together, and a service of its own.
type rootModule struct {
	*testing.T
	*faultserver.Server
	number     uint64
	random     *rand.Rand // of the goroutine that runs the module
	sum        *tally
	sim        *simulator.Server
	tls        bool
	bad        []*faultserver.Server // have the address, and not the right certificate
	budget     int                   // polls per second when it is to be felt, else 0
	config     attrs
	schemas    *fakecli.CLI // configured again for each run
	users      []*user
	chooser    chooser
	watch      *keyWatch
	start      time.Time
	faultsOver atomic.Bool // no more faults: every job must finish
	mu         sync.Mutex
	stopped    time.Time // when the run was interrupted
	postRest   pause
	getRest    pause
	polls      []time.Time
	slack      int // GETs that polls alone do not explain
}

// pause is one that the service requested.
type pause struct{ from, until time.Time }

func (p *pause) begin(d time.Duration) {
	now := time.Now()
	if end := now.Add(d); end.After(p.until) {
		p.from, p.until = now, end
	}
}

func (p *pause) holds(at time.Time) bool { return at.After(p.from) && at.Before(p.until) }

func newRootModule(t *testing.T, number uint64, random *rand.Rand, sum *tally) *rootModule {
	m := &rootModule{T: t, number: number, random: random, sum: sum, tls: random.IntN(4) == 0, watch: &keyWatch{}, start: time.Now(),
		chooser: chooser{postRows(), getRows()}}
	m.sim = simulator.New(simulator.Options{Key: harness.CanaryKey, Script: func(prompt string, turn int) simulator.Script {
		return m.userOf(prompt).script(turn)
	}})
	serve, authorities := faultserver.Options{InMemory: true}, ""
	if m.tls {
		serve.Certificate = faultserver.GoodCertificate
		for _, certificate := range []faultserver.Certificate{faultserver.ExpiredCertificate, faultserver.WrongNameCertificate, faultserver.GoodCertificate} {
			m.bad = append(m.bad, faultserver.New(t, http.NotFoundHandler(), faultserver.Options{InMemory: true, Certificate: certificate}))
		}
		authorities = m.bad[0].Authority + m.bad[1].Authority // the last one is not trusted
	}
	m.Server = faultserver.New(t, m.sim, serve)
	for _, kind := range []faultserver.Kind{faultserver.Create, faultserver.Message} {
		m.Always(kind, func(x *faultserver.Exchange) { m.post(kind, x) })
	}
	m.Always(faultserver.Get, m.get)
	m.config = attrs{"base_url": m.URL, "admin_key": harness.CanaryKey, "project_id": harness.Project}
	if m.tls {
		m.config["ca_certificates_pem"] = m.Authority + authorities
	}
	users := 2 + random.IntN(5)
	if random.IntN(6) == 0 {
		m.budget, users = 1+random.IntN(2), 10
		m.config["poll"] = attrs{"max_per_second": m.budget}
		sum.fault(rowID('P', 13))
	}
	for i := range users {
		m.users = append(m.users, newUser(m, i))
	}
	return m
}

// run lets the users apply under faults, and then without, until all is done.
func (m *rootModule) run() {
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
		u.close()
	}
	if elsewhere := slices.ContainsFunc(m.bad, func(s *faultserver.Server) bool { return len(s.Requests()) > 0 }); elsewhere {
		m.sum.wrong(keyBytes, 1)
		m.Error("a request went to a server with a bad certificate")
	}
	if !m.watch.complete {
		m.Error("nothing was logged")
	}
	if n := m.watch.found; n > 0 {
		m.sum.wrong(keyBytes, n)
		m.Errorf("the key was shown, stored or logged %d times, for the first time in: %s", n, m.watch.where)
	}
}

// apply is one "terraform apply" of all jobs, in a process of its own.
func (m *rootModule) apply() {
	m.mu.Lock()
	m.stopped, m.postRest, m.getRest, m.slack = time.Time{}, pause{}, pause{}, 0
	m.mu.Unlock()
	m.schemas = &fakecli.CLI{T: m.T}
	if diags := m.schemas.ConnectTo(m.context(nil), provider.New("test", provider.Options{Dial: m.dial}), m.config); len(diags) > 0 {
		m.Error(fakecli.Text(diags))
	}
	m.each(func(u *user) { u.plan() })
	m.mu.Lock()
	m.polls = nil
	interrupted := !m.stopped.IsZero()
	m.mu.Unlock()
	if interrupted {
		return
	}
	var interrupt *time.Timer
	if !m.faultsOver.Load() && m.random.IntN(6) == 0 {
		m.sum.fault(rowID('X', 2))
		interrupt = time.AfterFunc(moment(m.random), m.stop)
	}
	m.each(func(u *user) { u.apply() })
	if interrupt != nil {
		interrupt.Stop()
	}
	synctest.Wait() // an interrupt of this very moment is over
	m.checkBudget()
}

// moment is a time into a run: its first second is as likely as the first minute.
func moment(random *rand.Rand) time.Duration {
	return time.Millisecond << random.IntN(18) * time.Duration(1+random.IntN(10)) / 5
}

func (m *rootModule) each(do func(*user)) {
	var all sync.WaitGroup
	for _, u := range m.users {
		all.Go(func() { do(u) })
	}
	all.Wait()
}

// stop is the first Ctrl-C.
func (m *rootModule) stop() {
	m.mu.Lock()
	if m.stopped.IsZero() {
		m.stopped = time.Now()
	}
	m.mu.Unlock()
	m.sum.number("interrupts", 1)
	m.schemas.Stop()
}

func (m *rootModule) stoppedAt() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stopped
}

type userKey struct{}

func (m *rootModule) context(u *user) context.Context {
	ctx := tflogtest.RootLogger(tfsdklogtest.RootLogger(m.Context(), m.watch), m.watch)
	return context.WithValue(ctx, userKey{}, u)
}

// slacken allows for GETs that polls alone do not explain.
func (m *rootModule) slacken(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slack += n
}

// checkBudget asserts that all waits together stay under max_per_second.
func (m *rootModule) checkBudget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.SortFunc(m.polls, time.Time.Compare)
	most := m.budget + 2 + m.slack // a burst of one, and both ends of the second
	for i := most; m.budget > 0 && i < len(m.polls); i++ {
		if within := m.polls[i].Sub(m.polls[i-most]); within < time.Second {
			m.sum.wrong(other, 1)
			m.Errorf("module %d: %d polls within %s, with a budget of %d a second", m.number, most+1, within, m.budget)
			return
		}
	}
}
