// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race && unix

package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// unknown are the ids of the entries of creates without a response.
func (w *world) unknown() (ids []string) {
	for _, e := range w.entries() {
		if e.Status != store.Accepted && e.Key.IsCreate() {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// cutOnlyBy reports whether no run was cut in another way.
func (w *world) cutOnlyBy(allowed ...way) bool {
	return !slices.ContainsFunc(w.runs, func(r *run) bool { return r.cut.way != uncut && !slices.Contains(allowed, r.cut.way) })
}

// check asserts the promise. The last run was not cut.
func (w *world) check(s scenario) (wrong []string) {
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	after := func(exception string, n int, kind string) string { // n have the kind, and each lost entry explains one
		if n <= w.gone {
			return exception
		}
		return kind
	}
	blocked := 0 // in the last run, by what may have gone since
	for _, r := range w.runs[max(0, len(w.runs)-len(s.finals())):] {
		for _, d := range r.diags {
			if d.Severity != tfprotov6.DiagnosticSeverityError {
				continue
			}
			blocked++
			if !slices.Contains(blocking(), d.Summary) {
				fail("the last run fails: %s", d.Summary)
			}
		}
	}
	givenUp := len(w.runs[len(w.runs)-1].forget)
	var plans []*run
	resources, says := 0, false
	for _, c := range s.finals() {
		c.do = plan
		p := w.play(c, cut{})
		plans = append(plans, p)
		resources, says = resources+len(c.resources), says || len(p.diags) > 0
	}
	jobs, entries, unknown := w.sim.Jobs(), w.entries(), len(w.unknown())
	s.jobs += w.expected(s)
	if w.tainted {
		fail("a stored object is tainted, and no job has failed")
	}
	for _, p := range plans {
		if !p.empty && len(p.diags) == 0 && blocked == 0 {
			fail("the last plan is not empty and does not say why")
		}
	}
	if more := len(jobs) - s.jobs - givenUp; more > 0 {
		fail(after(withoutDisk, more, twice)+": %d jobs were started, want %d", len(jobs), s.jobs)
	}
	if s.isSimple() && len(jobs)+len(w.sharers) < s.jobs && blocked == 0 && unknown == 0 {
		kind := "never sent"
		if slices.ContainsFunc(w.runs, func(r *run) bool { return r.warned }) { // a replaced job was taken over
			kind = disregarded
		}
		fail("%s: %d jobs were started, want %d", kind, len(jobs), s.jobs)
	}
	ids := map[string]bool{}
	inState := 0
	for _, state := range w.states {
		inState += len(state)
		for address, o := range state {
			if id := o.id(); ids[id] {
				fail("%s: %s has the job of another resource", w.sharing(id), address)
			} else {
				ids[id] = true
			}
			i := slices.IndexFunc(jobs, func(job simulator.Job) bool { return job.ID == o.id() })
			saysSo := w.occurred["Outcome of message to agent job unknown"] || w.occurred["Message to agent job unconfirmed"]
			if i >= 0 && !slices.Contains(jobs[i].Prompts, fmt.Sprint(o.Get("prompt"))) && !saysSo {
				fail("never sent: %s says that its job has the prompt %v", address, o.Get("prompt"))
			}
		}
	}
	if w.cutOnlyBy(interrupted) && s.isSimple() && s.late < requestTimeout && w.occurred["Agent job of an earlier run taken over"] {
		fail("after Ctrl-C the state lacked a job")
	}
	survived := w.cutOnlyBy(interrupted, cliKilled, stalled) && s.late < requestTimeout
	hadTime := w.cutOnlyBy(interrupted, cliKilled, stalled, abandoned) && s.late == 0 // before the CLI killed it
	if (survived || hadTime) && s.isSimple() && !s.noJournal && unknown > 0 {
		fail("nobody has the response, although the provider lived on")
	}
	if missing := resources - inState; missing > blocked {
		fail("%d resources are missing, and %d were blocked", missing, blocked)
	}
	for _, e := range entries {
		// What could not be removed is harmless: only an equal request would find it.
		switch isSeen := e.Status == store.Accepted && w.everSeen[e.JobID]; {
		case w.everSeen[e.JobID] && w.entriesMayStay():
		case !e.Key.IsCreate() && (s.edited || s.beside != nil || !ids[e.JobID]): // a later message removes it, or its job was replaced
		case isSeen:
			fail(after(withoutDisk, 1, left)+": %+v", e)
		case !says && !s.edited:
			fail("hidden: no plan names what became of %+v", e)
		}
	}
	repeats, losses := 0, 0
	for i, job := range jobs {
		if repeatsPrompt(job.Prompts, s.prompts) {
			repeats++
			fail(after(withoutDisk, repeats, twice)+": job %s has the prompts %q", job.ID, job.Prompts)
		}
		inJournal := slices.ContainsFunc(entries, func(e entry) bool { return e.Status == store.Accepted && e.JobID == job.ID })
		switch {
		case i == 0 && s.foreign: // not the provider's
		case w.everSeen[job.ID], inJournal, strings.Contains(w.shown, job.ID):
		case unknown > 0:
			unknown--
		case givenUp > 0:
			givenUp--
		default:
			losses++
			fail(after(withoutDisk, losses, lost)+": job %s is in no state, not in the journal, and in no diagnostic", job.ID)
		}
	}
	return wrong
}

// blocking are the errors of a run that is not cut: what earlier ones have left wants a decision.
func blocking() []string {
	return []string{
		"Outcome of agent job create unknown", "Outcome of message to agent job unknown", // once
		"Agent job of an earlier run has another prompt", "Duplicate agent job name",
	}
}

// entriesMayStay reports whether some run could not remove entries. They are harmless: only an equal request would find them.
func (w *world) entriesMayStay() bool {
	return slices.ContainsFunc(w.runs, func(r *run) bool { return r.storeDown.Load() || r.suffers(noDeletes, storeHangs) })
}

// sharing is the exception that explains why two resources have a job, or that none does.
func (w *world) sharing(jobID string) string {
	r := w.sharers[jobID]
	isAlias := func(res resource) bool { return res.alias > 0 }
	switch {
	case r == nil:
		return "none"
	case r.warned:
		return disregarded
	case !slices.Contains(r.created, jobID) && slices.ContainsFunc(r.command.resources, isAlias):
		return twoAliases
	}
	return "shared"
}

// isSimple reports whether all runs are the same command, and nobody else interferes.
func (s scenario) isSimple() bool {
	return len(s.runs) == 1 && s.beside == nil && !s.refused && !s.foreign
}

// expected is how many jobs were started beside those that the scenario expects: by tests, and by somebody else.
func (w *world) expected(s scenario) (n int) {
	for _, r := range w.runs {
		if r.command.do == test {
			n += len(r.created)
		}
	}
	if s.foreign {
		n++
		if !w.everSeen[w.sim.Jobs()[0].ID] { // the import was cut, so its resource has started a job
			n++
		}
	}
	return n
}

// repeatsPrompt reports whether a job has received a prompt more often than allowed: once,
// unless there is a list.
func repeatsPrompt(got, allowed []string) bool {
	count := func(list []string, prompt string) (n int) {
		for _, p := range list {
			if p == prompt {
				n++
			}
		}
		return n
	}
	return slices.ContainsFunc(got, func(prompt string) bool { return count(got, prompt) > max(1, count(allowed, prompt)) })
}
