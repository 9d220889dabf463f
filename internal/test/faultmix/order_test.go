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

// order is one resource and its user, who applies until the prompts wanted are
// done, and does after an unknown outcome what the diagnostic advises.
type order struct {
	*world
	name      string
	core      *fakecli.CLI
	wants     []string // prompts, one after the other
	at        int      // the one that is wanted now
	options   attrs    // of the resource, besides the prompt
	onFailure string
	toImport  string // id of a job found at the service after an unknown outcome

	held      map[string]bool // ids that were ever in the state
	reported  map[string]bool // ids of jobs that were started by an outcome reported as unknown
	asked     int             // jobs asked for
	texts     map[string]int  // POSTs of a message that may have had their effect
	ready     bool            // planned, and to be applied
	satisfied bool
	playing   sync.WaitGroup // POSTs that the service is about to answer

	mu       sync.Mutex
	random   *rand.Rand
	applying bool // not refreshing
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
}

// sent is one POST, as the service knows it.
type sent struct {
	at     time.Time
	kind   faultserver.Kind
	prompt string
	fault  string
	class  class
	job    string // that it had its effect on; empty: none
}

func newOrder(w *world, n int) *order {
	random := rand.New(&sharedSource{source: rand.NewPCG(w.random.Uint64(), uint64(n))})
	o := &order{
		world: w, name: fmt.Sprintf("[%d.%d]", w.number, n), random: random, onFailure: "error", asked: 1,
		held: map[string]bool{}, reported: map[string]bool{}, texts: map[string]int{}, options: attrs{}, cancel: func() {},
	}
	for i := range 1 + random.IntN(4) {
		o.wants = append(o.wants, fmt.Sprintf("%s part %d", o.name, i))
	}
	settings := attrs{}
	if random.IntN(4) == 0 {
		o.onFailure = "warn"
		settings["on_failure"] = "warn"
	}
	if random.IntN(10) == 0 {
		settings["enabled"] = false
	}
	if len(settings) > 0 {
		o.options["wait"] = settings
	}
	if random.IntN(3) == 0 {
		limit := fmt.Sprintf("%dm", 2+random.IntN(9))
		o.options["timeouts"] = attrs{"create": limit, "update": limit}
	}
	return o
}

func (o *order) config() attrs { return fakecli.With(o.options, attrs{"prompt": o.wants[o.at]}) }

// script says how the service goes on with the job after a prompt.
func (o *order) script(turn int) simulator.Script {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calm.Load() {
		return simulator.Script{Duration: 2 * time.Second}
	}
	r := o.random
	s := simulator.Script{Duration: []time.Duration{2 * time.Second, 20 * time.Second, 90 * time.Second, 5 * time.Minute}[r.IntN(4)]}
	switch r.IntN(14) {
	case 0:
		s.Status = "failed"
		o.sum.number("jobs that failed by themselves", 1)
	case 1:
		s.Status = "archived"
	}
	switch {
	case turn == 0 && r.IntN(5) == 0:
		created := time.Now().Add([]time.Duration{-time.Hour, time.Hour}[r.IntN(2)]).UTC().Format(time.RFC3339)
		s.Extra = map[string]any{"createdAt": created}
		o.sum.fault(rowID('P', 12))
	case turn > 0 && r.IntN(3) == 0:
		s.Duration = max(s.Duration, 20*time.Second)
		s.Stale = time.Duration(1+r.IntN(9)) * time.Second
		o.sum.fault(rowID('M', 1))
	case turn > 0 && r.IntN(3) == 0:
		s.Duration = 0
		o.sum.fault(rowID('M', 2))
	}
	return s
}

// begin is the start of one call of the CLI to the provider.
func (o *order) begin(applying bool) context.Context {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.applying, o.began = applying, time.Now()
	o.cut, o.answered, o.sent, o.posts, o.gets = time.Time{}, time.Time{}, nil, nil, nil
	ctx, cancel := context.WithCancel(o.context(o))
	o.cancel = cancel
	return ctx
}

// interrupt ends the whole run, or this call alone.
func (o *order) interrupt() {
	if o.number%2 == 0 {
		o.stop()
		return
	}
	o.mu.Lock()
	cancel := o.cancel
	if o.cut.IsZero() {
		o.cut = time.Now()
	}
	o.mu.Unlock()
	o.sum.number("interrupts", 1)
	cancel()
}

// silence stops the alarms of the call that has ended.
func (o *order) silence() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, alarm := range o.alarms {
		alarm.Stop()
	}
	o.alarms = nil
}

// interruptedAt is when the call was told to end; zero: never. A stop in the
// moment in which the call began may have come before it and have passed it by.
func (o *order) interruptedAt() time.Time {
	stopped := o.stoppedAt()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !stopped.After(o.began) {
		stopped = time.Time{}
	}
	if stopped.IsZero() || !o.cut.IsZero() && o.cut.Before(stopped) {
		return o.cut
	}
	return stopped
}

// plan refreshes, or imports what was found at the service, and plans.
func (o *order) plan() {
	o.ready, o.satisfied = false, false
	if o.core == nil {
		o.core = &fakecli.CLI{T: o.T, Resource: o.schemas.Resource}
		o.core.State = tftypes.NewValue(o.core.Resource, nil)
	}
	o.core.Server = o.schemas.Server
	ctx := o.begin(false)
	defer o.cancel()
	o.arm(o.random.IntN(3) == 0)
	before := o.core.State
	if o.toImport != "" {
		diags := o.core.ImportState(ctx, harness.Project+"/"+o.toImport)
		o.note("import "+o.toImport, diags)
		if fakecli.Failed(diags) {
			o.core.State, o.core.Private, o.core.Identity = before, nil, nil
			return
		}
		delete(o.reported, o.toImport) // it is the one that was asked for
		o.toImport = ""
	} else {
		diags := o.core.Refresh(ctx)
		o.note("refresh", diags)
		o.intact(before, diags)
		if fakecli.Failed(diags) {
			return
		}
	}
	o.hold()
	if diags := o.core.Plan(ctx, o.config()); fakecli.Failed(diags) {
		o.note("plan", diags)
		return
	}
	o.checkReplacement()
	o.ready = true
}

// apply applies what was planned, judges the outcome, and decides what is wanted next.
func (o *order) apply() {
	if o.random.IntN(3) == 0 && !o.calm.Load() {
		time.Sleep(time.Duration(o.random.IntN(10_000)) * time.Millisecond) // others come first
	}
	if !o.ready || !o.stoppedAt().IsZero() {
		return
	}
	ctx := o.begin(true)
	defer o.cancel()
	e := expectation{before: o.core.State, want: o.wants[o.at]}
	e.creating = e.before.IsNull() || o.core.Replace
	e.messaging = !e.creating && o.core.Get("prompt") != nil && o.core.Get("prompt") != e.want
	if e.creating || e.messaging {
		o.armPosts(e.messaging)
	}
	o.arm(o.random.IntN(2) == 0)
	if o.core.Replace {
		o.asked++
	}
	diags := o.core.Apply(ctx, o.config())
	o.silence()
	o.note("apply", diags)
	o.checkStop()
	unknown := o.judge(e, diags)
	o.hold()
	switch {
	case unknown:
		o.lookAtService(e)
	case !fakecli.Failed(diags) && o.core.Get("prompt") == e.want:
		o.satisfied = o.at == len(o.wants)-1
		if !o.satisfied && (o.calm.Load() || o.random.IntN(5) > 0) {
			o.at++
		}
	}
}

// lookAtService is what an unknown outcome asks the user to do.
func (o *order) lookAtService(e expectation) {
	o.sum.number("unknown outcomes reported", 1)
	last := o.sent[len(o.sent)-1]
	switch {
	case e.creating && last.job != "":
		o.reported[last.job] = true
		if o.random.IntN(2) == 0 {
			o.toImport = last.job
		}
	case e.messaging && o.random.IntN(2) == 0: // does not look, and applies again: nothing is sent
	case e.messaging && last.job == "":
		o.wants[o.at] += ", please" // a word is enough, and sends it
	case e.messaging:
		o.satisfied = o.at == len(o.wants)-1
		o.at = min(o.at+1, len(o.wants)-1)
	}
}

// done reports whether the last apply left nothing to do.
func (o *order) done() bool { return o.satisfied && o.ready && o.core.Empty() }

// hold keeps the id that the state has now.
func (o *order) hold() {
	if id, ok := o.core.Get("id").(string); ok {
		o.held[id] = true
	}
	if !o.core.State.IsFullyKnown() {
		o.fail(other, "unknown values in the state: %s", o.core.State)
	}
	fmt.Fprintln(o.watch, o.core.State, string(o.core.Private), string(o.core.PlannedPrivate))
}
