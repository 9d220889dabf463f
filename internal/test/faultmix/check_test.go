// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultmix

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// check compares an apply with what the service has read, and reports whether
// the outcome is unknown to the user.
func (u *user) check(before tftypes.Value, want string, diags []*tfprotov6.Diagnostic) (unknown bool) {
	last := u.checkSent(want)
	shown, id := fakecli.Text(diags), u.cli.Get("id")
	if u.cli.Tainted {
		if job, _ := u.sim.Job(id.(string)); job.Status != "failed" || u.onFailure != "error" {
			u.fail(tainted, "job %s is %s: %s", job.ID, job.Status, shown)
		}
	}
	unknown = last.class == unknownOutcome
	says := map[class]string{
		notSent: "request was not sent", limited: "rate limit refused", refused: "service refused", unknownOutcome: "a job may have been started",
	}[last.class]
	switch {
	case u.sends == faultserver.Create && last.class == accepted && id != last.job:
		u.fail(lostIDs, "job %s was started, the state has %v", last.job, id)
	case u.sends == faultserver.Create && last.class != accepted && id != nil:
		u.fail(other, "the POST was %s (%s), and the state has job %v", last.class, last.fault.row, id)
	case u.sends == faultserver.Message && (unknown || last.class == accepted):
		if u.cli.Get("prompt") != want {
			u.fail(duplicates, "the state lacks the prompt that was sent, so it will be sent again")
		}
		says, unknown = "", strings.Contains(shown, "Outcome of message to agent job unknown")
		if unknown && last.class == accepted || !unknown && last.job == "" { // a GET may have shown the effect of an unknown one
			u.fail(other, "a message was %s (%s), which is not what the user sees: %s", last.class, last.fault.row, shown)
		}
	case u.sends == faultserver.Message && !u.cli.State.Equal(before):
		u.fail(other, "the message was %s (%s), and the state changed from %s to %s", last.class, last.fault.row, before, u.cli.State)
	case u.sends == "":
		return false
	}
	if says != "" && (!fakecli.Failed(diags) || !strings.Contains(shown, says)) {
		u.fail(other, "the POST was %s (%s), and no error says %q: %s", last.class, last.fault.row, says, shown)
	}
	return unknown
}

// checkSent asserts that nothing was sent after a POST that may have had its
// effect, and returns the last one.
func (u *user) checkSent(want string) *sent {
	u.mu.Lock()
	all := slices.Clone(u.sent)
	u.mu.Unlock()
	stopped, last := u.run.stoppedAt(), &sent{class: notSent, fault: &fault{}}
	for _, s := range all {
		switch {
		case last.class != notSent && last.class != limited:
			u.fail(duplicates, "a POST after one that was %s (%s)", last.class, last.fault.row)
		case s.kind != u.sends || s.prompt != want:
			u.fail(duplicates, "a %s with %q, which nobody asked for", s.kind, s.prompt)
		case !stopped.IsZero() && s.at.After(stopped):
			u.fail(other, "a POST %s after the interrupt", s.at.Sub(stopped))
		}
		last = s
		if s.kind == faultserver.Message && (s.class == accepted || s.class == unknownOutcome) {
			if u.messages[s.prompt]++; u.messages[s.prompt] > 1 {
				u.fail(duplicates, "message %q was sent again", s.prompt)
			}
		}
	}
	return last
}

// checkReplacement asserts that a new job is planned for one that has truly
// ended without accepting further prompts, and for no other.
func (u *user) checkReplacement() {
	if !u.cli.Replace {
		return
	}
	job, _ := u.sim.Job(u.cli.Get("id").(string))
	closed := job.Status == "failed" || job.Status == "archived"
	if retry := job.Status == "failed" && u.onFailure == "error"; !retry && (!closed || u.cli.Get("prompt") == u.prompts[u.at]) {
		u.fail(duplicates, "job %s, which is %s, would be replaced", job.ID, job.Status)
	}
}

// checkStop asserts that an interrupt ends the call soon, once no POST is in flight.
func (u *user) checkStop() {
	from := u.run.stoppedAt()
	if from.IsZero() {
		return
	}
	u.mu.Lock()
	for _, s := range u.sent {
		if s.over.IsZero() {
			from = u.ended // the provider has given up on a response, after request_timeout
		} else if s.over.After(from) {
			from = s.over
		}
	}
	u.mu.Unlock()
	if took := u.ended.Sub(from); took > 2*time.Second {
		u.fail(other, "it took %s to stop", took)
	}
}

// done reports whether the last apply left nothing to do.
func (u *user) done() bool { return u.satisfied && u.ready && u.cli.Empty() }

// checkEnd compares, at the very end, what was asked for with what the service has.
func (u *user) checkEnd() {
	if !u.done() {
		u.fail(other, "it never ended: state %s", u.cli.State)
	}
	started, delivered := 0, map[string]int{}
	for _, job := range u.sim.Jobs() {
		if u.userOf(job.Prompts[0]) != u {
			continue
		}
		started++
		if !u.held[job.ID] && !u.reported[job.ID] {
			u.fail(lostIDs, "job %s was never in the state, and no outcome was reported as unknown", job.ID)
		}
		for _, prompt := range job.Prompts[1:] {
			u.sum.number(messages, 1)
			if delivered[prompt]++; delivered[prompt] > 1 {
				u.fail(duplicates, "message %q was delivered again", prompt)
			}
		}
	}
	u.sum.number(jobs, started)
	if started != u.asked+len(u.reported) {
		u.fail(duplicates, "%d jobs were started, %d asked for, %d reported as unknown", started, u.asked, len(u.reported))
	}
}

// fail counts what must not happen, and shows the history of the user.
func (u *user) fail(what, format string, args ...any) {
	u.sum.number(what, 1)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.log("WRONG: %s: %s", what, fmt.Sprintf(format, args...))
	u.Errorf("what was sent and shown:\n  %s", strings.Join(u.history, "\n  "))
	u.history = nil
}
