// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// user has one resource, applies until the prompts wanted are done, and does
// after an unknown outcome what the diagnostic advises.
type user struct {
	*rootModule
	name      string
	cli       *fakecli.CLI
	wants     []string // prompts, one after the other
	at        int      // the one that is wanted now
	options   attrs    // of the resource, besides the prompt
	onFailure string
	toImport  string // id of a job found in the service after an unknown outcome

	held      map[string]bool // ids that were ever in the state
	reported  map[string]bool // ids of jobs that were started by an outcome reported as unknown
	asked     int             // jobs asked for
	texts     map[string]int  // POSTs of a message that may have had their effect
	ready     bool            // planned, and to be applied
	satisfied bool
	playing   sync.WaitGroup // POSTs that the service is about to respond to

	mu       sync.Mutex
	seed     uint64
	calls    uint64     // of the CLI to the provider so far
	random   *rand.Rand // of this call
	applying bool       // not refreshing
	began    time.Time
	cancel   context.CancelFunc
	cut      time.Time // when this call alone was cancelled
	answered time.Time // when the last POST was
	posts    []*postFault
	gets     []*getFault
	sent     []sent // by this apply
	alarms   []*time.Timer
	kind     faultserver.Kind // of the POSTs that this apply is to send
	prompt   string
	history  []string
	failures int
	turns    [2][]turn // of new jobs, and after messages
}

// sent is one POST, as the service knows it.
type sent struct {
	at     time.Time
	kind   faultserver.Kind
	prompt string
	fault  string
	class  class
	job    string // that it had its effect on; empty: none
	says   string // what the error about one that was never sent begins with
}

func newUser(m *rootModule, n int) *user {
	seed := m.random.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	u := &user{
		seed: seed, rootModule: m, name: fmt.Sprintf("[%d.%d]", m.number, n), random: random, onFailure: "error", asked: 1,
		held: map[string]bool{}, reported: map[string]bool{}, texts: map[string]int{}, options: attrs{}, cancel: func() {},
	}
	for i := range 1 + random.IntN(4) {
		u.wants = append(u.wants, fmt.Sprintf("%s part %d", u.name, i))
	}
	for range 20 {
		u.turns[0], u.turns[1] = append(u.turns[0], drawTurn(random, true)), append(u.turns[1], drawTurn(random, false))
	}
	settings := attrs{}
	if random.IntN(4) == 0 {
		u.onFailure = "warn"
		settings["on_failure"] = "warn"
	}
	if random.IntN(10) == 0 {
		settings["enabled"] = false
	}
	if len(settings) > 0 {
		u.options["wait"] = settings
	}
	if random.IntN(3) == 0 {
		limit := fmt.Sprintf("%dm", 2+random.IntN(9))
		u.options["timeouts"] = attrs{"create": limit, "update": limit}
	}
	return u
}

func (u *user) config() attrs { return fakecli.With(u.options, attrs{"prompt": u.wants[u.at]}) }

// script is the next turn.
func (u *user) script(n int) simulator.Script {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.faultsOver.Load() {
		return simulator.Script{Duration: 2 * time.Second}
	}
	queue := &u.turns[min(n, 1)]
	t := (*queue)[0]
	*queue = append((*queue)[1:], t) // again from the start, should there be many
	if t.Status == "failed" {
		u.sum.number("jobs that failed by themselves", 1)
	}
	if t.skew != 0 {
		t.Extra = map[string]any{"createdAt": time.Now().Add(t.skew).UTC().Format(time.RFC3339)}
	}
	if t.fault != "" {
		u.sum.fault(t.fault)
	}
	return t.Script
}

// begin is the start of one call of the CLI to the provider.
func (u *user) begin(applying bool) context.Context {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.applying, u.began, u.calls = applying, time.Now(), u.calls+1
	u.random = rand.New(rand.NewPCG(u.seed, u.calls)) // so that a seed repeats the faults of each call, however the last one went
	u.cut, u.answered, u.sent, u.posts, u.gets = time.Time{}, time.Time{}, nil, nil, nil
	ctx, cancel := context.WithCancel(u.context(u))
	u.cancel = cancel
	return ctx
}

// interrupt ends the whole run, or this call alone.
func (u *user) interrupt() {
	if u.number%2 == 0 {
		u.stop()
		return
	}
	u.mu.Lock()
	cancel := u.cancel
	if u.cut.IsZero() {
		u.cut = time.Now()
	}
	u.mu.Unlock()
	u.sum.number("interrupts", 1)
	cancel()
}

// silence stops the alarms of the call that has ended.
func (u *user) silence() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, alarm := range u.alarms {
		alarm.Stop()
	}
	u.alarms = nil
}

// interruptedAt is when the call was header to end; zero: never. A stop in the
// moment in which the call began may have come before it and have passed it by.
func (u *user) interruptedAt() time.Time {
	stopped := u.stoppedAt()
	u.mu.Lock()
	defer u.mu.Unlock()
	if !stopped.After(u.began) {
		stopped = time.Time{}
	}
	if stopped.IsZero() || !u.cut.IsZero() && u.cut.Before(stopped) {
		return u.cut
	}
	return stopped
}

// plan refreshes, or imports what was found in the service, and plans.
func (u *user) plan() {
	u.ready, u.satisfied = false, false
	if u.cli == nil {
		u.cli = &fakecli.CLI{T: u.T, Resource: u.schemas.Resource}
		u.cli.State = tftypes.NewValue(u.cli.Resource, nil)
	}
	u.cli.Server = u.schemas.Server
	ctx := u.begin(false)
	defer u.cancel()
	u.arm(u.random.IntN(3) == 0)
	before := u.cli.State
	if u.toImport != "" {
		diags := u.cli.ImportState(ctx, harness.Project+"/"+u.toImport)
		u.note("import "+u.toImport, diags)
		if fakecli.Failed(diags) {
			u.cli.State, u.cli.Private, u.cli.Identity = before, nil, nil
			return
		}
		delete(u.reported, u.toImport) // it is the one that was asked for
		u.toImport = ""
	} else {
		diags := u.cli.Refresh(ctx)
		u.note("refresh", diags)
		u.intact(before, diags)
		if fakecli.Failed(diags) {
			return
		}
	}
	u.noteID()
	if diags := u.cli.Plan(ctx, u.config()); fakecli.Failed(diags) {
		u.note("plan", diags)
		return
	}
	u.checkReplacement()
	u.ready = true
}

// apply applies what was planned, judges the outcome, and decides what is wanted next.
func (u *user) apply() {
	if u.random.IntN(3) == 0 && !u.faultsOver.Load() {
		time.Sleep(time.Duration(u.random.IntN(10_000)) * time.Millisecond) // others come first
	}
	if !u.ready || !u.stoppedAt().IsZero() {
		return
	}
	ctx := u.begin(true)
	defer u.cancel()
	e := expectation{before: u.cli.State, want: u.wants[u.at]}
	e.creating = e.before.IsNull() || u.cli.Replace
	e.messaging = !e.creating && u.cli.Get("prompt") != nil && u.cli.Get("prompt") != e.want
	if e.creating || e.messaging {
		u.armPosts(e.messaging)
	}
	u.arm(u.random.IntN(2) == 0)
	if u.cli.Replace {
		u.asked++
	}
	diags := u.cli.Apply(ctx, u.config())
	u.silence()
	u.note("apply", diags)
	u.checkStop()
	unknown := u.check(e, diags)
	u.noteID()
	switch {
	case unknown:
		u.followAdvice(e)
	case !fakecli.Failed(diags) && u.cli.Get("prompt") == e.want:
		u.satisfied = u.at == len(u.wants)-1
		if !u.satisfied && (u.faultsOver.Load() || u.random.IntN(5) > 0) {
			u.at++
		}
	}
}

// followAdvice is what an unknown outcome asks the user to do.
func (u *user) followAdvice(e expectation) {
	u.sum.number("unknown outcomes reported", 1)
	last := u.sent[len(u.sent)-1]
	switch {
	case e.creating && last.job != "":
		u.reported[last.job] = true
		if u.random.IntN(2) == 0 {
			u.toImport = last.job
		}
	case e.messaging && u.random.IntN(2) == 0: // does not look, and applies again: nothing is sent
	case e.messaging && last.job == "":
		u.wants[u.at] += ", please" // a word is enough, and sends it
	case e.messaging:
		u.satisfied = u.at == len(u.wants)-1
		u.at = min(u.at+1, len(u.wants)-1)
	}
}

// done reports whether the last apply left nothing to do.
func (u *user) done() bool { return u.satisfied && u.ready && u.cli.Empty() }

// noteID keeps the id that the state has now.
func (u *user) noteID() {
	if id, ok := u.cli.Get("id").(string); ok {
		u.held[id] = true
	}
	if !u.cli.State.IsFullyKnown() {
		u.fail(other, "unknown values in the state: %s", u.cli.State)
	}
	fmt.Fprintln(u.watch, u.cli.State, string(u.cli.Private), string(u.cli.PlannedPrivate))
}
