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

// world is one root module: some jobs of one provider configuration, applied
// together, and a service of its own.
type world struct {
	*testing.T
	*faultserver.Server
	number   uint64
	random   *rand.Rand // of the goroutine that runs the world
	sum      *tally
	sim      *simulator.Server
	tls      bool
	bad      []*faultserver.Server // have the address, and not the right certificate
	budget   int                   // polls per second when it is to be felt, else 0
	config   attrs
	schemas  *fakecli.CLI // configured anew for each run
	orders   []*order
	chooser  chooser
	watch    *keyWatch
	start    time.Time
	calm     atomic.Bool // no more faults: all shall come to its end
	mu       sync.Mutex
	stopped  time.Time // when the run was interrupted
	postRest pause
	getRest  pause
	polls    []time.Time
	slack    int // GETs that polls alone do not explain
}

// pause is one that the service has asked for.
type pause struct{ from, until time.Time }

func (p *pause) begin(d time.Duration) {
	now := time.Now()
	if end := now.Add(d); end.After(p.until) {
		p.from, p.until = now, end
	}
}

func (p *pause) holds(at time.Time) bool { return at.After(p.from) && at.Before(p.until) }

func newWorld(t *testing.T, number uint64, random *rand.Rand, sum *tally) *world {
	w := &world{T: t, number: number, random: random, sum: sum, tls: random.IntN(4) == 0, watch: &keyWatch{}, start: time.Now(),
		chooser: chooser{postRows(), getRows()}}
	w.sim = simulator.New(simulator.Options{Key: harness.CanaryKey, Script: func(prompt string, turn int) simulator.Script {
		return w.orderOf(prompt).script(turn)
	}})
	serve, authorities := faultserver.Options{InMemory: true}, ""
	if w.tls {
		serve.Certificate = faultserver.GoodCertificate
		for _, certificate := range []faultserver.Certificate{faultserver.ExpiredCertificate, faultserver.WrongNameCertificate, faultserver.GoodCertificate} {
			w.bad = append(w.bad, faultserver.New(t, http.NotFoundHandler(), faultserver.Options{InMemory: true, Certificate: certificate}))
		}
		authorities = w.bad[0].Authority + w.bad[1].Authority // the last one is not trusted
	}
	w.Server = faultserver.New(t, w.sim, serve)
	for _, kind := range []faultserver.Kind{faultserver.Create, faultserver.Message} {
		w.Always(kind, func(x *faultserver.Exchange) { w.post(kind, x) })
	}
	w.Always(faultserver.Get, w.get)
	w.config = attrs{"base_url": w.URL, "admin_key": harness.CanaryKey, "project_id": harness.Project}
	if w.tls {
		w.config["ca_certificates_pem"] = w.Authority + authorities
	}
	orders := 2 + random.IntN(5)
	if random.IntN(6) == 0 {
		w.budget, orders = 1+random.IntN(2), 10
		w.config["poll"] = attrs{"max_per_second": w.budget}
		sum.fault(rowID('P', 13))
	}
	for i := range orders {
		w.orders = append(w.orders, newOrder(w, i))
	}
	return w
}

// run lets the users apply under faults, and then without, until all is done.
func (w *world) run() {
	for range 3 + w.random.IntN(4) {
		w.apply()
	}
	w.calm.Store(true)
	for range 12 {
		time.Sleep(time.Minute) // the service has its records in order again
		w.apply()
		if !slices.ContainsFunc(w.orders, func(o *order) bool { return !o.done() }) {
			break
		}
	}
	for _, o := range w.orders {
		o.close()
	}
	if elsewhere := slices.ContainsFunc(w.bad, func(s *faultserver.Server) bool { return len(s.Requests()) > 0 }); elsewhere {
		w.sum.wrong(keyBytes, 1)
		w.Error("a request went to a server with a bad certificate")
	}
	if !w.watch.complete {
		w.Error("nothing was logged")
	}
	if n := w.watch.found; n > 0 {
		w.sum.wrong(keyBytes, n)
		w.Errorf("the key was shown, stored or logged %d times, for the first time in: %s", n, w.watch.where)
	}
}

// apply is one "terraform apply" of all jobs, in a process of its own.
func (w *world) apply() {
	w.mu.Lock()
	w.stopped, w.postRest, w.getRest, w.slack = time.Time{}, pause{}, pause{}, 0
	w.mu.Unlock()
	w.schemas = &fakecli.CLI{T: w.T}
	if diags := w.schemas.ConnectTo(w.context(nil), provider.New("test", provider.Options{Dial: w.dial}), w.config); len(diags) > 0 {
		w.Error(fakecli.Text(diags))
	}
	w.each(func(o *order) { o.plan() })
	w.mu.Lock()
	w.polls = nil
	interrupted := !w.stopped.IsZero()
	w.mu.Unlock()
	if interrupted {
		return
	}
	var interrupt *time.Timer
	if !w.calm.Load() && w.random.IntN(6) == 0 {
		w.sum.fault(rowID('X', 2))
		interrupt = time.AfterFunc(moment(w.random), w.stop)
	}
	w.each(func(o *order) { o.apply() })
	if interrupt != nil {
		interrupt.Stop()
	}
	synctest.Wait() // an interrupt of this very moment is over
	w.checkBudget()
}

// moment is a time into a run: its first second is as likely as the first minute.
func moment(random *rand.Rand) time.Duration {
	return time.Millisecond << random.IntN(18) * time.Duration(1+random.IntN(10)) / 5
}

func (w *world) each(do func(*order)) {
	var all sync.WaitGroup
	for _, o := range w.orders {
		all.Go(func() { do(o) })
	}
	all.Wait()
}

// stop is the first Ctrl-C.
func (w *world) stop() {
	w.mu.Lock()
	if w.stopped.IsZero() {
		w.stopped = time.Now()
	}
	w.mu.Unlock()
	w.sum.number("interrupts", 1)
	w.schemas.Stop()
}

func (w *world) stoppedAt() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped
}

type orderKey struct{}

func (w *world) context(o *order) context.Context {
	ctx := tflogtest.RootLogger(tfsdklogtest.RootLogger(w.Context(), w.watch), w.watch)
	return context.WithValue(ctx, orderKey{}, o)
}

// slacken allows for GETs that polls alone do not explain.
func (w *world) slacken(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slack += n
}

// checkBudget asserts that all waits together stay under max_per_second.
func (w *world) checkBudget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortFunc(w.polls, time.Time.Compare)
	most := w.budget + 2 + w.slack // a burst of one, and both ends of the second
	for i := most; w.budget > 0 && i < len(w.polls); i++ {
		if within := w.polls[i].Sub(w.polls[i-most]); within < time.Second {
			w.sum.wrong(other, 1)
			w.Errorf("world %d: %d polls within %s, with a budget of %d a second", w.number, most+1, within, w.budget)
			return
		}
	}
}
