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
	limitedForNow  class = "limited" // sent again after the pause
	refusedForGood class = "refused"
	unknownToAll   class = "unknown"
	neverSent      class = "not sent"
)

// expectation is what an apply was about.
type expectation struct {
	creating, messaging bool
	before              tftypes.Value
	want                string
}

// judge holds an apply against what the service has read, and reports whether
// the outcome was unknown.
func (o *order) judge(e expectation, diags []*tfprotov6.Diagnostic) (unknown bool) {
	o.mu.Lock()
	all := append([]sent(nil), o.sent...)
	o.mu.Unlock()
	last := o.onlyOne(e, all)
	shown := fakecli.Text(diags)
	if o.core.Tainted {
		job, _ := o.sim.Job(o.core.Get("id").(string))
		if job.Status != "failed" || o.onFailure != "error" {
			o.fail(tainted, "job %s is %s: %s", job.ID, job.Status, shown)
		}
	}
	says := func(words string) {
		if !fakecli.Failed(diags) || !strings.Contains(shown, words) {
			o.fail(other, "no error says %q: %s", words, shown)
		}
	}
	switch {
	case e.creating:
		return o.judgeCreate(last, says)
	case !e.messaging:
		return false
	}
	switch last.class {
	case neverSent:
		says("Nothing was sent")
		o.unchanged(e.before)
	case refusedForGood:
		says("refused the message")
		o.unchanged(e.before)
	case accepted, unknownToAll:
		if o.core.Get("prompt") != e.want {
			o.fail(duplicates, "the state has not got the prompt that was sent, so it will be sent again")
		}
		unknown = strings.Contains(shown, matrix.MessageUnknown)
		if unknown && last.class == accepted || !unknown && last.job == "" {
			o.fail(other, "a message whose answer was %s, from %s, was taken for another: %s", last.class, last.fault, shown)
		}
	}
	return unknown
}

func (o *order) judgeCreate(last sent, says func(string)) (unknown bool) {
	id, _ := o.core.Get("id").(string)
	switch last.class {
	case neverSent:
		says("Nothing was sent")
	case refusedForGood:
		says("refused the request")
	case unknownToAll:
		says("a job may have been started")
	case accepted:
		if id != last.job {
			o.fail(lostIDs, "job %s was started, the state has %q", last.job, id)
		}
		return false
	}
	if id != "" {
		o.fail(other, "the POST was %s, and the state has job %s", last.class, id)
	}
	return last.class == unknownToAll
}

// onlyOne asserts that nothing was sent after a POST that may have had its
// effect, and returns that POST.
func (o *order) onlyOne(e expectation, all []sent) sent {
	last := sent{class: neverSent}
	stopped := o.interruptedAt()
	for _, s := range all {
		if last.class != neverSent {
			o.fail(duplicates, "a POST after one that was %s (%s)", last.class, last.fault)
		}
		if !stopped.IsZero() && s.at.After(stopped) {
			o.fail(other, "a POST %s after the interrupt", s.at.Sub(stopped))
		}
		if s.kind == faultserver.Create != e.creating || s.prompt != e.want {
			o.fail(duplicates, "a %s with %q that nobody asked for", s.kind, s.prompt)
		}
		if s.class == limitedForNow || s.class == neverSent {
			continue
		}
		last = s
		if s.kind == faultserver.Message && s.class != refusedForGood {
			if o.texts[s.prompt]++; o.texts[s.prompt] > 1 {
				o.fail(duplicates, "message %q was sent again", s.prompt)
			}
		}
	}
	if len(all) > 0 && !e.creating && !e.messaging {
		o.fail(duplicates, "an apply that was to send nothing has sent")
	}
	return last
}

// unchanged asserts that a message without effect left the state alone.
func (o *order) unchanged(before tftypes.Value) {
	if !o.core.State.Equal(before) {
		o.fail(other, "the state was changed from %s to %s", before, o.core.State)
	}
}

// intact asserts that a refresh without a record has lost nothing.
func (o *order) intact(before tftypes.Value, diags []*tfprotov6.Diagnostic) {
	if before.IsNull() {
		return
	}
	if o.core.Get("id") != o.core.Attribute(before, "id") {
		o.fail(lostIDs, "a refresh has changed the id to %v", o.core.Get("id"))
	}
	if fakecli.Failed(diags) || strings.Contains(fakecli.Text(diags), "Agent job not found") {
		o.unchanged(before)
	}
}

// checkReplacement asserts that a new job is planned for one that has truly
// ended without taking further prompts, and for no other.
func (o *order) checkReplacement() {
	if !o.core.Replace {
		return
	}
	job, _ := o.sim.Job(o.core.Get("id").(string))
	dead := job.Status == "failed" || job.Status == "archived"
	retry := job.Status == "failed" && o.onFailure == "error"
	if !retry && (!dead || o.core.Get("prompt") == o.wants[o.at]) {
		o.fail(duplicates, "job %s, which is %s, is to be replaced", job.ID, job.Status)
	}
}

// checkStop asserts that an interrupt ends the call soon, once no POST is under way.
func (o *order) checkStop() {
	stopped, ended := o.interruptedAt(), time.Now()
	if stopped.IsZero() {
		return
	}
	o.playing.Wait() // until o.answered is set
	o.mu.Lock()
	answered := o.answered
	o.mu.Unlock()
	if answered.After(stopped) {
		stopped = answered
	}
	if took := ended.Sub(stopped); took > 2*time.Second {
		o.fail(other, "it took %s to stop", took)
	}
}

// close compares, at the very end, what was asked for with what there is.
func (o *order) close() {
	if !o.done() {
		o.fail(other, "it never came to its end: state %s", o.core.State)
	}
	started, delivered, texts := 0, 0, map[string]int{}
	for _, job := range o.sim.Jobs() {
		if !strings.HasPrefix(job.Prompts[0], o.name) {
			continue
		}
		started++
		if !o.held[job.ID] && !o.reported[job.ID] {
			o.fail(lostIDs, "job %s was never in the state, and no outcome was reported as unknown", job.ID)
		}
		for _, prompt := range job.Prompts[1:] {
			delivered++
			if texts[prompt]++; texts[prompt] > 1 {
				o.fail(duplicates, "message %q was delivered %d times", prompt, texts[prompt])
			}
		}
	}
	if started != o.asked+len(o.reported) {
		o.fail(duplicates, "%d jobs were started, %d asked for, %d reported as unknown", started, o.asked, len(o.reported))
	}
	for name, n := range map[string]int{
		"jobs asked for": o.asked, "jobs started": started, "jobs started by an outcome reported as unknown": len(o.reported),
		"messages asked for": len(o.texts), "messages delivered": delivered,
	} {
		o.sum.number(name, n)
	}
}
