// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race && unix

package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// The documented exceptions: they are not wrong, and occur.
const (
	twoAliases = "an alias adopts the job of another one's resource with the same name"
	lastOnly   = "the record of a name has its last job only"
)

// cutOnlyBy reports whether no run was cut in another way.
func (w *world) cutOnlyBy(allowed ...way) bool {
	return !slices.ContainsFunc(w.runs, func(r *run) bool { return r.cut.way != uncut && !slices.Contains(allowed, r.cut.way) })
}

// check asserts the promise. The last run was not cut.
func (w *world) check() {
	s := w.scenario
	last := w.runs[len(w.runs)-1]
	blocked, givenUp := w.blocked(last), len(last.forget)
	again := s.last()
	again.do, again.taints, again.lost, again.restored = plan, "", false, false
	again.resources = slices.Clone(again.resources)
	for i := range again.resources {
		again.resources[i].Planned, again.resources[i].Forced = nil, false
	}
	p := w.play(again, cut{})
	jobs, unknown := w.sim.Jobs(), w.unknown()

	// What is in the way is said, and only that stops a run.
	if !p.Empty && len(p.Diags) == 0 && blocked == 0 {
		w.Errorf("the last plan is not empty and does not say why")
	}
	if w.cutOnlyBy() && s.stops != (blocked > 0) {
		w.Errorf("no run was cut, and the last one stops: %t", blocked > 0)
	}
	isAlone := w.cutOnlyBy(killed, interrupted, abandoned, loseRequest, loseResponse, stateLost, serviceDown)
	if isAlone && w.occurred[fakecli.Inconsistent] {
		w.Errorf("an apply plans something else than its plan")
	}
	says := len(p.Diags) > 0 || slices.ContainsFunc(saying, func(summary string) bool { return w.occurred[summary] })
	if r := w.records(); s.isSimple() && !says && slices.ContainsFunc(r, isUnknown) {
		w.Errorf("hidden: nothing says what became of %+v", r)
	}

	// Nothing is sent twice, or without a journal.
	for _, r := range w.runs {
		if r.cut.way == unconditional && r.posts > 0 {
			w.Errorf("run %d sent a request, and its store ignores conditions", r.number+1)
		}
	}
	if len(jobs) > max(s.jobs, s.atMost)+givenUp {
		w.Errorf("sent twice: %d jobs were started, want %d", len(jobs), s.jobs)
	}
	for _, job := range jobs {
		once := slices.Clone(job.Prompts)
		if i := slices.Index(once, s.repeats); i >= 0 {
			once = slices.Delete(once, i, i+1)
		}
		if slices.Sort(once); len(slices.Compact(once)) < len(once) {
			w.Errorf("sent twice: job %s has the prompts %q", job.ID, job.Prompts)
		}
	}

	// What was asked for is sent.
	isSure := s.isSimple() || w.cutOnlyBy() || s.destroys && w.runs[len(w.runs)-3].cut.way == uncut && !w.outlived()
	keepsName := w.occurred["Journal not usable"] // it could not be released, so its job is adopted
	if isSure && len(jobs) < s.jobs && blocked == 0 && len(unknown) == 0 && !keepsName {
		w.Errorf("never sent: %d jobs were started, want %d", len(jobs), s.jobs)
	}
	inState := w.checkState(jobs)
	missing := len(again.resources) - inState
	if missing > blocked {
		w.Errorf("%d resources are missing, and %d were blocked", missing, blocked)
	}
	if missing > 0 && slices.ContainsFunc(last.forget, func(id string) bool { return slices.Contains(unknown, id) }) {
		w.Errorf("a person has given a create up, and it was not sent again")
	}

	// Nothing is lost.
	if w.cutOnlyBy(interrupted) && s.isSimple() && s.late < requestTimeout && !s.adopts && (w.occurred[adopted] || w.tainted) {
		w.Errorf("after Ctrl-C the state lacked a job, or it was tainted")
	}
	survived := w.cutOnlyBy(interrupted, cliKilled, stalled, losePut, latePut) && s.late < requestTimeout
	hadTime := w.cutOnlyBy(interrupted, cliKilled, stalled, abandoned) && s.late == 0 // before the CLI killed it
	couldRetry := w.cutOnlyBy(storeHangs) && s.script.Duration >= 30*time.Second      // the CLI does not end the provider before the store is back
	if (survived || hadTime || couldRetry) && s.isSimple() && len(unknown) > 0 {
		w.Errorf("nobody has the response, although the provider lived on")
	}
	w.checkLost(jobs, len(unknown)+givenUp, blocked > 0)
}

// checkLost asserts that each job is known, but for as many as nobody can know.
func (w *world) checkLost(jobs []simulator.Job, unknown int, isBlocked bool) {
	s := w.scenario
	for _, job := range jobs {
		isRecorded := slices.ContainsFunc(w.records(), func(r journal.Record) bool { return r.JobID == job.ID })
		switch {
		case w.everSeen[job.ID]:
		case unknown > 0:
			unknown--
		case (isBlocked || !s.isSimple()) && strings.Contains(w.shown, job.ID), isRecorded && !s.isSimple(): // "terraform query" lists it
		case !s.isSimple() && (w.outlived() || s.hides):
			w.occurred[lastOnly] = true
		default:
			w.Errorf("job %s was paid for, and is in no state", job.ID)
		}
	}
}

// outlived reports whether a provider went on after its CLI was killed, perhaps after the next run had planned.
func (w *world) outlived() bool {
	return slices.ContainsFunc(w.runs, func(r *run) bool { return r.cut.way == cliKilled || r.cut.way == stalled })
}

// blocked returns how many errors the last run had, which was not cut.
func (w *world) blocked(last *run) (blocked int) {
	allowed := slices.Concat(blocking, w.scenario.errors)
	for _, d := range last.Diags {
		if d.Severity != tfprotov6.DiagnosticSeverityError {
			continue
		}
		blocked++
		if !slices.Contains(allowed, d.Summary) {
			w.Errorf("the last run fails: %s: %s", d.Summary, d.Detail)
		}
	}
	if last.Failed && !last.planned.Load() {
		blocked += len(last.command.resources)
	}
	return blocked
}

// checkState compares the state with the service. It returns how many jobs it has.
func (w *world) checkState(jobs []simulator.Job) (number int) {
	ids := map[string]bool{}
	for address, o := range w.state {
		if o.State.IsNull() {
			continue
		}
		number++
		if ids[idOf(o.Instance)] {
			w.occurred[twoAliases] = w.occurred[twoAliases] || w.scenario.hasAliases()
			if !w.scenario.hasAliases() {
				w.Errorf("%s has the job of another resource", address)
			}
		}
		ids[idOf(o.Instance)] = true
		i := slices.IndexFunc(jobs, func(job simulator.Job) bool { return job.ID == idOf(o.Instance) })
		saysSo := w.occurred["Outcome of message to agent job unknown"] || w.occurred["Message to agent job unconfirmed"]
		if prompt := o.Get("prompt"); i >= 0 && prompt != nil && !slices.Contains(jobs[i].Prompts, fmt.Sprint(prompt)) && !saysSo {
			w.Errorf("never sent: %s says that its job has the prompt %v", address, prompt)
		}
	}
	return number
}

// adopted is what is said of a job that a create has adopted.
const adopted = "Agent job adopted"

// blocking are the errors of a run that is not cut: what earlier ones have left wants a decision.
var blocking = []string{"Outcome of agent job create unknown", "Outcome of message to agent job unknown"} // once

// saying is what a user has read about a request whose outcome is not in its record.
var saying = append([]string{"Message of an earlier run counts as sent", "Journal not written"}, blocking...)

const running = "Name has a running agent job"

// isSimple reports whether all runs are the same command, and nobody else interferes.
func (s scenario) isSimple() bool {
	return len(s.runs) == 1
}

// hasAliases reports whether a resource has another provider configuration than the others.
func (s scenario) hasAliases() bool {
	return slices.ContainsFunc(s.runs[len(s.runs)-1].resources, func(r fakecli.Resource) bool { return r.Alias > 0 })
}
