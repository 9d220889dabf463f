// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// Whoever asks for another job gets one, with create_before_destroy or without, and a failed job is not paid for again by itself.
func TestReplacement(t *testing.T) {
	lives := map[string][]step{}
	for _, how := range []string{"", ", create_before_destroy", ", create_before_destroy, deposed last"} {
		createFirst := how != ""
		of := func(prompt string, more attrs) []object {
			o := named("docs", prompt).with(more)
			o.createFirst, o.deposedLast = createFirst, strings.HasSuffix(how, "last")
			return []object{o}
		}
		forced := func(prompt string, more attrs) []object {
			all := of(prompt, more)
			all[0].forced = true
			return all
		}
		taints := func(l *life) { l.state["docs"][0].Tainted = true }
		fails := func(l *life) { l.s.SetStatus(l.state["docs"][0].Get("id").(string), "failed") }
		triggers := func(v any) attrs { return attrs{"triggers": attrs{"v": v}} }
		onFailure := func(what string) attrs { return attrs{"wait": attrs{"on_failure": what}} }
		a, next := of("A", nil), func(creates int, number int) []step { // the name has the job with the number, and no other
			return []step{
				{objects: of("A", nil), creates: creates, after: has(fmt.Sprint("docs ", number))},
				{before: lost, objects: of("A", nil), says: []string{willAdopt, adopted}, creates: creates},
			}
		}
		first := step{objects: a, creates: 1}
		failed1 := step{objects: of("fail", nil), says: []string{failed}, creates: 1}
		kept := []string{staysFailed}
		if createFirst { // the apply does not know what is replaced
			kept = append(kept, willAdopt, adopted)
		}
		still := step{objects: of("fail", nil), says: append(slices.Clip(kept), failed), creates: 1}
		later := func(objects []object, more attrs) []object {
			objects[0].planned = fakecli.With(objects[0].job, more)
			return objects
		}
		undecided := func(job, planned attrs, says ...string) step { // the plan cannot tell whether the job keeps its name
			return step{objects: later(of("fail", job), planned), says: append(slices.Clip(says), failed), creates: 1}
		}
		stopped := []string(nil)
		if createFirst {
			stopped = []string{mayStop, stops}
		}
		again := still
		if createFirst && !strings.HasSuffix(how, "last") { // the apply has destroyed the deposed object, which is the job's
			again.says = []string{staysFailed, adopted, failed}
		}
		unanswered := func(l *life) {
			l.s.Inject(simulator.Fault{Kind: simulator.KindCreate, Status: 500, AfterEffect: true})
		}
		found := []string{notInState, adopted} // the CLI drops the warnings of a replacement's second call, but not in an apply
		if createFirst {
			found = slices.Insert(found, 1, willAdopt)
		}
		for name, steps := range map[string][]step{
			"N22 forced":       append([]step{first, {objects: forced("A", nil), creates: 2}}, next(2, 2)...),
			"N22 tainted":      append([]step{first, {before: taints, objects: a, creates: 2}}, next(2, 2)...),
			"tainted, another": append([]step{{objects: of("B", nil), creates: 1}, {before: taints, objects: a, creates: 2}}, next(2, 2)...),
			"N22 triggers": {
				{objects: of("A", triggers("1")), creates: 1}, {objects: of("A", triggers("2")), creates: 2, after: has("docs 2")},
				{objects: of("A", triggers("2")), creates: 2},
				{before: lost, objects: of("A", triggers("2")), says: []string{willAdopt, adopted}, creates: 2},
				{before: lost, objects: of("A", triggers("1")), says: []string{notInState}, creates: 3}, // only the last job is remembered
			},
			"forced with other triggers": {
				{objects: of("A", triggers("1")), creates: 1}, {objects: forced("A", triggers("2")), creates: 2, after: has("docs 2")},
			},
			"another project": {
				first, {objects: of("A", attrs{"project_id": "proj_2"}), creates: 2},
				{objects: of("A", attrs{"project_id": "proj_2"}), creates: 2},
			},
			"forced, with another name": {
				first, {objects: func() []object {
					all := forced("A", nil)
					all[0].job["name"] = "other"
					return all
				}(), creates: 2, after: has("docs 1!", "other 2")},
			},
			"N22 planned, and not applied": {
				first, {objects: forced("A", nil), planOnly: true, creates: 1, after: has("docs 1!")},
				{objects: a, planOnly: true, creates: 1, after: has("docs 1")},
				{before: lost, objects: a, says: []string{willAdopt, adopted}, creates: 1},
			},
			"planned, not applied, and then forced": append([]step{
				first, {objects: forced("A", nil), planOnly: true, creates: 1}, {objects: forced("A", nil), creates: 2},
			}, next(2, 2)...),
			"planned, not applied, of a state that does not know of an adoption": {
				first, {before: lost, objects: a, says: []string{willAdopt, adopted}, creates: 1},
				{before: asBefore(1), objects: forced("A", nil), planOnly: true, says: []string{adoptedTwice}, creates: 1, after: has("docs 1!")},
				{objects: a, planOnly: true, creates: 1, after: has("docs 1")},
				{objects: []object{gone("docs")}, creates: 1, after: has("docs 1!")},
			},
			"without a response": {
				first, {before: unanswered, objects: forced("A", nil), says: []string{unknownCreate}, creates: 2},
				{before: lost, objects: a, says: []string{mayUnknown, unknownCreate}, creates: 2},
			},
			"N21 killed, and the state is as before": {
				first, {objects: forced("A", nil), creates: 2},
				{before: asBefore(1), objects: a, says: []string{notInState}, creates: 2},
				{before: asBefore(1), objects: forced("A", nil), says: found, creates: 2, after: has("docs 2")},
				{objects: a, creates: 2},
			},
			"N25 failed": {
				failed1, still, again,
				{objects: of("A", nil), creates: 2}, {objects: of("A", nil), creates: 2},
				{before: lost, objects: of("A", nil), says: []string{willAdopt, adopted}, creates: 2, after: has("docs 2")},
			},
			"failed, and triggers are not known in the plan": {
				{objects: of("fail", triggers("1")), says: []string{failed}, creates: 1}, undecided(triggers("1"), triggers(unknown{}), kept[1:]...),
			},
			"failed, and the name is not known in the plan": {failed1, undecided(attrs{}, attrs{"name": unknown{}}, kept[1:]...)},
			"failed, and new triggers are not known in the plan": {
				{objects: of("fail", triggers("1")), says: []string{failed}, creates: 1},
				{objects: later(of("fail", triggers("2")), triggers(unknown{})), says: []string{failed}, creates: 2},
				{objects: of("A", triggers("2")), creates: 3, after: has("docs 3")},
			},
			"failed, and a new prompt, and triggers are not known in the plan": {
				{objects: of("fail", triggers("1")), says: []string{failed}, creates: 1},
				{objects: later(of("A", triggers("1")), triggers(unknown{})), says: stopped, creates: 2 - len(stopped)/2},
			},
			"failed under another name, tainted, and named as before": {
				first, {objects: of("fail", attrs{"name": "other"}), says: []string{followUp, failed}, creates: 1, messages: 1},
				{before: taints, objects: of("A", nil), creates: 2, messages: 1, after: has("docs 2", "other 1!")},
			},
			"failed, and the plan does not know the provider's key": {
				failed1, {objects: of("fail", nil), unconfigured: true, says: append([]string{"WARNING: Agent job not refreshed"}, append(slices.Clip(kept[1:]), failed)...), creates: 1},
			},
			"failed, and refreshed": {failed1, still, {before: refreshed, objects: of("fail", nil), says: again.says, creates: 1}},
			"failed, and one response has no status": {failed1, still, {before: func(l *life) {
				l.s.Inject(simulator.Fault{Kind: simulator.KindGet, Status: 200, Body: fmt.Sprintf(`{"id":%q}`, l.s.OnlyJob(l.t).ID)})
			}, objects: of("fail", nil), says: again.says, creates: 1}},
			"failed, another prompt planned, and not applied": {
				failed1, {objects: of("A", nil), planOnly: true, creates: 1}, still,
			},
			"failed, retry planned, and not applied": {
				failed1, {objects: of("fail", onFailure("retry")), planOnly: true, creates: 1}, still,
			},
			"forced, and triggers are not known in the plan": {
				{objects: of("A", triggers("1")), creates: 1}, {objects: later(forced("A", triggers("1")), triggers(unknown{})), creates: 2, after: has("docs 2")},
			},
			"failed, and new triggers":    {failed1, still, {objects: of("fail", triggers("2")), says: []string{failed}, creates: 2}},
			"failed, and other triggers":  {failed1, {objects: of("A", triggers("2")), creates: 2, after: has("docs 2")}},
			"failed, and destroyed":       {failed1, still, {objects: []object{gone("docs")}, creates: 1, after: has("docs 1!")}},
			"failed, and lost":            {failed1, {before: lost, objects: of("fail", nil), says: []string{willAdopt, adopted, failed}, creates: 1}, still},
			"failed, and warned of":       {failed1, {objects: of("fail", onFailure("warn")), says: append(slices.Clip(kept), "WARNING: Agent job failed"), creates: 1}},
			"failed, and active again":    {failed1, {before: func(l *life) { l.s.SetStatus(l.s.OnlyJob(l.t).ID, "completed") }, objects: of("fail", nil), says: []string{failed}, creates: 2}},
			"N25 retry":                   {{objects: of("fail", onFailure("retry")), says: []string{failed}, creates: 1}, {objects: of("fail", onFailure("retry")), says: []string{failed}, creates: 2}},
			"failed, and retry":           {failed1, still, {objects: of("fail", onFailure("retry")), says: []string{failed}, creates: 2}},
			"retry, lost":                 {failed1, {before: lost, objects: of("fail", onFailure("retry")), says: []string{willAdopt, failed}, creates: 2}},
			"retry, lost, and not failed": {first, {before: lost, objects: of("A", onFailure("retry")), says: []string{willAdopt, adopted}, creates: 1}},
			"retry of one that is not tainted": append([]step{
				first, {before: fails, objects: of("A", onFailure("retry")), says: []string{retriesFailed}, creates: 2},
			}, next(2, 2)...),
			"no retry of one that is not tainted": {first, {before: fails, objects: a, says: []string{"WARNING: Agent job failed"}, creates: 1}},
		} {
			if !strings.HasSuffix(how, "last") || strings.HasPrefix(name, "failed") { // nothing else leaves a deposed object
				lives[name+how] = steps
			}
		}
	}
	play(t, lives)
}

// A plan whose credentials may not write says that it could not release the name, which an apply with create_before_destroy needs.
// Without a word of it, only a plan that could not say so fails: Terraform drops the warnings of -replace.
func TestReplacement_readOnlyPlan(t *testing.T) {
	const notReleased = "Name of agent job not released"
	a := attrs{"prompt": "A"}
	for name, test := range map[string]struct {
		before func(c *fakecli.CLI, s *harness.Service)
		job    attrs
		fails  string // what the store refuses
		want   string
	}{
		"forced, no listing":  {before: func(c *fakecli.CLI, _ *harness.Service) { c.Forced = true }, job: a, fails: "list", want: "ERROR: " + notReleased},
		"forced":              {before: func(c *fakecli.CLI, _ *harness.Service) { c.Forced = true }, job: a, want: "ERROR: " + notReleased},
		"tainted":             {before: func(c *fakecli.CLI, _ *harness.Service) { c.Tainted = true }, job: a, want: "WARNING: " + notReleased},
		"failed, new prompt":  {before: func(c *fakecli.CLI, s *harness.Service) { s.SetStatus(c.Get("id").(string), "failed") }, job: attrs{"prompt": "B"}, want: "WARNING: " + notReleased}, // J9
		"other triggers":      {job: attrs{"prompt": "A", "triggers": attrs{"v": "1"}}},
		"nothing is replaced": {job: a},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := fakes3.New(t), harness.NewService(t, nil)
			config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": f.URL + "&state=a"}})
			c := fakecli.New(t, config)
			wantErrors(t, apply(t, c, "first", config, attrs{"prompt": "A"}))
			f.SetHook(func(r *http.Request, _ func()) int {
				switch op := fakes3.Op(r); {
				case test.fails != "" && strings.HasPrefix(op, test.fails):
					return http.StatusServiceUnavailable
				case test.fails == "" && op == "write":
					return http.StatusForbidden
				}
				return 0
			})
			if test.before != nil {
				test.before(c, s)
			}
			startRun(c, "plan", config)
			diags := append(c.Refresh(t.Context()), c.Plan(t.Context(), test.job)...)
			got := fakecli.Text(diags)
			isError := fakecli.Failed(diags)
			if !strings.Contains(got, test.want) || strings.HasPrefix(test.want, "ERROR") != isError || test.want == "" && strings.Contains(got, notReleased) {
				t.Errorf("want %q in: %s", test.want, got)
			}
			s.Sent(t, 1, 0)
		})
	}
}

// A plan that could not list the journal does not know that a failed job keeps its name, and its apply does not pay again.
func TestReplacement_failedUnlisted(t *testing.T) {
	f, s := fakes3.New(t), harness.NewService(t, byPrompt)
	config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": f.URL + "&state=a"}})
	c := fakecli.New(t, config)
	wantErrors(t, apply(t, c, "first", config, attrs{"prompt": "fail"}), "Agent job failed")
	f.SetHook(func(r *http.Request, _ func()) int {
		if strings.HasPrefix(fakes3.Op(r), "list") {
			return http.StatusServiceUnavailable
		}
		return 0
	})
	startRun(c, "second", config)
	wantErrors(t, append(c.Refresh(t.Context()), c.Plan(t.Context(), attrs{"prompt": "fail"})...))
	f.SetHook(nil)
	startRun(c, "second", config)
	wantErrors(t, c.Apply(t.Context(), attrs{"prompt": "fail"}), "Agent job failed")
	s.Sent(t, 1, 0)
}

// A replacement whose destroy failed leaves nothing that a later "terraform destroy" takes for a replacement.
func TestReplacement_failedDelete(t *testing.T) {
	f, s := fakes3.New(t), harness.NewService(t, byPrompt)
	config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": f.URL + "&state=a"}})
	c := fakecli.New(t, config)
	wantErrors(t, apply(t, c, "first", config, attrs{"prompt": "fail"}), "Agent job failed")
	startRun(c, "second", config)
	wantErrors(t, append(c.Refresh(t.Context()), c.Plan(t.Context(), attrs{"prompt": "fail"})...))
	f.SetHook(func(*http.Request, func()) int { return http.StatusForbidden })
	wantErrors(t, c.Apply(t.Context(), attrs{"prompt": "fail"}), "Agent job not replaced")
	f.SetHook(nil)
	startRun(c, "third", config)
	wantErrors(t, append(c.Refresh(t.Context()), c.Destroy(t.Context())...))
	wantErrors(t, apply(t, c, "fourth", config, attrs{"prompt": "fail"}), "Agent job failed")
	s.Sent(t, 2, 0)
}

// The error of a failed job says what the next apply does, which depends on the taint and on the setting.
func TestFailed_next(t *testing.T) {
	for onFailure, want := range map[string]string{
		"error": "The next apply with the same prompt and triggers sends nothing",
		"warn":  "apply with -replace=ADDRESS",
		"retry": "so the next apply starts a new job",
	} {
		s := harness.NewService(t, byPrompt)
		config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": t.TempDir() + stateName}})
		diags := apply(t, fakecli.New(t, config), "run", config, attrs{"prompt": "fail", "wait": attrs{"on_failure": onFailure}})
		harness.Contains(t, fakecli.Text(diags), want)
	}
	off := fakecli.New(t, harness.NewService(t, byPrompt).Attrs())
	harness.Contains(t, fakecli.Text(off.Run(t.Context(), attrs{"prompt": "fail"})), "there is no journal, so the next apply starts a new job")
}
