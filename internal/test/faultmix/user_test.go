// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// user has one resource, applies until all prompts are done, and does after an
// unknown outcome what the diagnostic advises.
type user struct {
	*module
	cli       *fakecli.CLI
	prompts   []string // one after the other
	at        int      // the current one
	options   attrs    // of the resource, besides the prompt
	onFailure string
	found     string // id of a job to import after an unknown outcome
	ready     bool   // planned, and to be applied
	satisfied bool

	asked    int             // jobs asked for
	held     map[string]bool // ids that were ever in the state
	reported map[string]bool // ids of jobs that were started by an outcome reported as unknown
	messages map[string]int  // POSTs of a message that may have had their effect, by prompt

	seed, calls, turns uint64
	random             *rand.Rand       // of the current call
	sends              faultserver.Kind // what the current apply must send; "": nothing
	ended              time.Time

	mu      sync.Mutex
	posts   []*fault // of the current call, as gets and sent
	gets    []*fault
	sent    []*sent
	history []string
}

// sent is one POST, as the service knows it.
type sent struct {
	kind     faultserver.Kind
	prompt   string
	fault    *fault
	class    class  // not always the fault's: the service may refuse a message
	job      string // that it had its effect on; "": none
	at, over time.Time
}

func newUser(m *module, n int) *user {
	seed := m.random.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	u := &user{
		module: m, seed: seed, cli: &fakecli.CLI{T: m.T}, options: attrs{}, onFailure: "error",
		asked: 1, held: map[string]bool{}, reported: map[string]bool{}, messages: map[string]int{},
	}
	for i := range 1 + random.IntN(4) {
		u.prompts = append(u.prompts, fmt.Sprintf("%d: part %d", n, i))
	}
	wait := attrs{}
	if random.IntN(4) == 0 {
		u.onFailure = "warn"
		wait["on_failure"] = "warn"
	}
	if random.IntN(10) == 0 {
		wait["enabled"] = false
	}
	if len(wait) > 0 {
		u.options["wait"] = wait
	}
	if random.IntN(3) == 0 {
		limit := fmt.Sprintf("%dm", 2+random.IntN(9))
		u.options["timeouts"] = attrs{"create": limit, "update": limit}
	}
	return u
}

func (u *user) config() attrs { return fakecli.With(u.options, attrs{"prompt": u.prompts[u.at]}) }

// script is how the service continues the job after a prompt.
func (u *user) script(turn int) simulator.Script {
	if u.faultsOver.Load() {
		return simulator.Script{Duration: 2 * time.Second}
	}
	u.turns++ // by one POST at a time
	r := rand.New(rand.NewPCG(u.seed, 1<<32+u.turns))
	s := simulator.Script{
		Duration: pick(r, 2*time.Second, 20*time.Second, 90*time.Second, 5*time.Minute),
		Status:   pick(r, "failed", "archived", "", "", "", "", "", "", "", "", "", "", "", ""),
	}
	switch {
	case turn > 0 && r.IntN(3) == 0:
		s.Duration, s.Stale = max(s.Duration, 20*time.Second), time.Duration(1+r.IntN(9))*time.Second
		u.sum.fault("old record after a message (M01)")
	case turn > 0 && r.IntN(2) == 0:
		s.Duration = 0
		u.sum.fault("finished at once (M02)")
	}
	return s
}

// begin begins a call of the CLI to the provider. Its faults are drawn now, so that
// a seed repeats those of each call, however long the one before took.
func (u *user) begin(applying bool) context.Context {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls++
	u.random = rand.New(rand.NewPCG(u.seed, u.calls))
	u.ended, u.sent, u.posts, u.gets = time.Time{}, nil, nil, nil
	if u.faultsOver.Load() {
		return u.context(u)
	}
	for u.sends != "" && u.random.IntN(3) > 0 {
		f := drawFault(u, postRows)
		if u.posts = append(u.posts, f); f.class != limited && f.class != notSent {
			break
		}
	}
	switch {
	case applying:
		for range u.random.IntN(4) {
			u.gets = append(u.gets, &fault{times: 1 + u.random.IntN(3)}, drawFault(u, getRows))
		}
	case u.random.IntN(3) == 0:
		u.gets = []*fault{drawFault(u, getRows)}
	}
	return u.context(u)
}

// plan refreshes, or imports a job that the service has, and plans.
func (u *user) plan() {
	if u.cli.State.Type() == nil {
		u.cli.Resource = u.run.Resource
		u.cli.Forget()
	}
	u.cli.Server, u.cli.Computed = u.run.Server, u.run.Computed
	u.ready, u.satisfied, u.sends = false, false, ""
	ctx := u.begin(false)
	before := u.cli.State
	if u.found != "" {
		diags := u.cli.ImportState(ctx, harness.Project+"/"+u.found)
		u.note("import "+u.found, diags)
		if fakecli.Failed(diags) {
			u.cli.State, u.cli.Private, u.cli.Identity = before, nil, nil
			return
		}
		delete(u.reported, u.found) // it is the one that was asked for
		u.found = ""
	} else {
		id := u.cli.Get("id")
		diags := u.cli.Refresh(ctx)
		u.note("refresh", diags)
		if u.cli.Get("id") != id {
			u.fail(lostIDs, "a refresh changed the id %v to %v", id, u.cli.Get("id"))
		}
		if fakecli.Failed(diags) {
			return
		}
	}
	diags := u.cli.Plan(ctx, u.config())
	u.note("plan", diags)
	u.checkReplacement()
	u.ready = !fakecli.Failed(diags)
}

// apply applies what was planned, checks the outcome, and decides what is wanted next.
func (u *user) apply() {
	if !u.ready || !u.run.stoppedAt().IsZero() {
		return
	}
	before, want := u.cli.State, u.prompts[u.at]
	prompt := u.cli.Get("prompt") // null after an import, which sends nothing
	switch {
	case before.IsNull() || u.cli.Replace:
		u.sends = faultserver.Create
	case prompt != nil && prompt != want:
		u.sends = faultserver.Message
	}
	ctx := u.begin(true)
	if u.cli.Replace {
		u.asked++
	}
	diags := u.cli.Apply(ctx, u.config())
	u.ended = time.Now()
	u.note("apply", diags)
	switch {
	case u.check(before, want, diags):
		u.followAdvice()
	case !fakecli.Failed(diags) && u.cli.Get("prompt") == want:
		u.satisfied = u.at == len(u.prompts)-1
		if !u.satisfied && (u.faultsOver.Load() || u.random.IntN(5) > 0) {
			u.at++
		}
	}
}

// followAdvice is what an unknown outcome asks the user to do.
func (u *user) followAdvice() {
	u.sum.number(reported, 1)
	last := u.sent[len(u.sent)-1]
	looks := u.random.IntN(2) == 0 // otherwise just applies again
	switch {
	case u.sends == faultserver.Create && last.job != "":
		u.reported[last.job] = true
		if looks {
			u.found = last.job
		}
	case u.sends == faultserver.Create:
	case looks && last.job == "":
		u.prompts[u.at] += ", please" // any change sends it
	case looks:
		u.satisfied = u.at == len(u.prompts)-1
		u.at = min(u.at+1, len(u.prompts)-1)
	}
}

// note keeps what the CLI would have printed, and has it and what is stored searched for the key.
func (u *user) note(call string, diags []*tfprotov6.Diagnostic) {
	fmt.Fprintln(u.module, fakecli.Text(diags), u.cli.State, string(u.cli.Private), string(u.cli.PlannedPrivate))
	for _, d := range diags {
		detail, _, _ := strings.Cut(d.Detail, "\n")
		call += fmt.Sprintf(" | %s: %s: %.200s", d.Severity, d.Summary, detail)
	}
	if id, ok := u.cli.Get("id").(string); ok {
		u.held[id] = true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.log("%s | state: %v %v", call, u.cli.Get("id"), u.cli.Get("status"))
}

// log adds to the history. The caller holds u.mu.
func (u *user) log(format string, args ...any) {
	u.history = append(u.history, fmt.Sprintf("%9.3fs ", time.Since(u.start).Seconds())+fmt.Sprintf(format, args...))
}
