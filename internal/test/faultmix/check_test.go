// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/matrix"
)

// class is how the provider has to take the answer of a POST.
type class string

const (
	accepted       class = "accepted"
	limited        class = "limited" // sent again after the pause
	refused        class = "refused"
	unknownOutcome class = "unknown"
	neverSent      class = "not sent"
)

// expectation is what an apply was about.
type expectation struct {
	creating, messaging bool
	before              tftypes.Value
	want                string
}

// check holds an apply against what the service has read, and reports whether
// the outcome was unknown.
func (u *user) check(e expectation, diags []*tfprotov6.Diagnostic) (unknown bool) {
	u.mu.Lock()
	all := append([]sent(nil), u.sent...)
	u.mu.Unlock()
	last := u.onlyOne(e, all)
	shown := fakecli.Text(diags)
	if u.cli.Tainted {
		job, _ := u.sim.Job(u.cli.Get("id").(string))
		if job.Status != "failed" || u.onFailure != "error" {
			u.fail(tainted, "job %s is %s: %s", job.ID, job.Status, shown)
		}
	}
	says := func(words string) {
		if !fakecli.Failed(diags) || !strings.Contains(shown, words) {
			u.fail(other, "no error says %q: %s", words, shown)
		}
	}
	switch {
	case e.creating:
		return u.checkCreate(last, says)
	case !e.messaging:
		return false
	}
	switch last.class {
	case neverSent:
		says(last.says)
		u.unchanged(e.before)
	case refused:
		says("refused the request")
		u.unchanged(e.before)
	case accepted, unknownOutcome:
		if u.cli.Get("prompt") != e.want {
			u.fail(duplicates, "the state has not got the prompt that was sent, so it will be sent again")
		}
		unknown = strings.Contains(shown, matrix.MessageUnknown)
		if unknown && last.class == accepted || !unknown && last.job == "" {
			u.fail(other, "a message whose answer was %s, from %s, was taken for another: %s", last.class, last.fault, shown)
		}
	}
	return unknown
}

func (u *user) checkCreate(last sent, says func(string)) (unknown bool) {
	id, _ := u.cli.Get("id").(string)
	switch last.class {
	case neverSent:
		says(last.says)
	case refused:
		says("refused the request")
	case unknownOutcome:
		says("a job may have been started")
	case accepted:
		if id != last.job {
			u.fail(lostIDs, "job %s was started, the state has %q", last.job, id)
		}
		return false
	}
	if id != "" {
		u.fail(other, "the POST was %s, and the state has job %s", last.class, id)
	}
	return last.class == unknownOutcome
}

// onlyOne asserts that nothing was sent after a POST that may have had its
// effect, and returns that POST.
func (u *user) onlyOne(e expectation, all []sent) sent {
	last := sent{class: neverSent, says: "The request was not sent"}
	stopped := u.interruptedAt()
	for _, s := range all {
		if last.class != neverSent {
			u.fail(duplicates, "a POST after one that was %s (%s)", last.class, last.fault)
		}
		if !stopped.IsZero() && s.at.After(stopped) {
			u.fail(other, "a POST %s after the interrupt", s.at.Sub(stopped))
		}
		if s.kind == faultserver.Create != e.creating || s.prompt != e.want {
			u.fail(duplicates, "a %s with %q that nobody asked for", s.kind, s.prompt)
		}
		if s.class == limited {
			last.says = "rate limit refused"
		}
		if s.class == limited || s.class == neverSent {
			continue
		}
		last = s
		if s.kind == faultserver.Message && s.class != refused {
			if u.texts[s.prompt]++; u.texts[s.prompt] > 1 {
				u.fail(duplicates, "message %q was sent again", s.prompt)
			}
		}
	}
	if len(all) > 0 && !e.creating && !e.messaging {
		u.fail(duplicates, "an apply that was to send nothing has sent")
	}
	return last
}

// unchanged asserts that a message without effect left the state alone.
func (u *user) unchanged(before tftypes.Value) {
	if !u.cli.State.Equal(before) {
		u.fail(other, "the state was changed from %s to %s", before, u.cli.State)
	}
}

// intact asserts that a refresh without a record has lost nothing.
func (u *user) intact(before tftypes.Value, diags []*tfprotov6.Diagnostic) {
	if before.IsNull() {
		return
	}
	if u.cli.Get("id") != u.cli.Attribute(before, "id") {
		u.fail(lostIDs, "a refresh has changed the id to %v", u.cli.Get("id"))
	}
	if fakecli.Failed(diags) || strings.Contains(fakecli.Text(diags), "Agent job not found") {
		u.unchanged(before)
	}
}

// checkReplacement asserts that a new job is planned for one that has truly
// ended without taking further prompts, and for no other.
func (u *user) checkReplacement() {
	if !u.cli.Replace {
		return
	}
	job, _ := u.sim.Job(u.cli.Get("id").(string))
	dead := job.Status == "failed" || job.Status == "archived"
	retry := job.Status == "failed" && u.onFailure == "error"
	if !retry && (!dead || u.cli.Get("prompt") == u.wants[u.at]) {
		u.fail(duplicates, "job %s, which is %s, is to be replaced", job.ID, job.Status)
	}
}

// checkStop asserts that an interrupt ends the call soon, once no POST is under way.
func (u *user) checkStop() {
	stopped, ended := u.interruptedAt(), time.Now()
	if stopped.IsZero() {
		return
	}
	u.playing.Wait() // until u.answered is set
	u.mu.Lock()
	answered := u.answered
	u.mu.Unlock()
	if answered.After(stopped) {
		stopped = answered
	}
	if took := ended.Sub(stopped); took > 2*time.Second {
		u.fail(other, "it took %s to stop", took)
	}
}

// close compares, at the very end, what was asked for with what there is.
func (u *user) close() {
	if !u.done() {
		u.fail(other, "it never came to its end: state %s", u.cli.State)
	}
	started, delivered, texts := 0, 0, map[string]int{}
	for _, job := range u.sim.Jobs() {
		if !strings.HasPrefix(job.Prompts[0], u.name) {
			continue
		}
		started++
		if !u.held[job.ID] && !u.reported[job.ID] {
			u.fail(lostIDs, "job %s was never in the state, and no outcome was reported as unknown", job.ID)
		}
		for _, prompt := range job.Prompts[1:] {
			delivered++
			if texts[prompt]++; texts[prompt] > 1 {
				u.fail(duplicates, "message %q was delivered %d times", prompt, texts[prompt])
			}
		}
	}
	if started != u.asked+len(u.reported) {
		u.fail(duplicates, "%d jobs were started, %d asked for, %d reported as unknown", started, u.asked, len(u.reported))
	}
	for name, n := range map[string]int{
		"jobs asked for": u.asked, "jobs started": started, "jobs started by an outcome reported as unknown": len(u.reported),
		"messages asked for": len(u.texts), "messages delivered": delivered,
	} {
		u.sum.number(name, n)
	}
}
