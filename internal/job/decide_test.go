// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
)

// Each row changes one thing after another of a completed job whose plan changes nothing.
func TestDecide(t *testing.T) {
	type edit = func(e *existing)
	is := func(status agentapi.Status) edit {
		return func(e *existing) { e.state.Status = types.StringValue(string(status)) }
	}
	prompt := func(text types.String) edit { return func(e *existing) { e.plan.Prompt = text } }
	writeOnly := func(text types.String) edit {
		return func(e *existing) { e.plan.Prompt, e.plan.PromptWO = types.StringNull(), text }
	}
	onFailure := func(what string) edit { return func(e *existing) { e.options.onFailure = what } }
	foreseen := func(r send.Result) edit { return func(e *existing) { e.foreseen.Result = r } }
	failed, archived, active := is(agentapi.StatusFailed), is(agentapi.StatusArchived), is(agentapi.StatusActive)
	mayRetry := func(e *existing) { e.options.isUnknown = true }
	unwaited := func(e *existing) { e.options = waitOptions{} }
	refuses := func(e *existing) { e.marks.RefusesMessages = true }
	imported := func(e *existing) { e.state.Prompt = types.StringNull() }
	unnamed := func(e *existing) { e.state.Name = types.StringNull() }
	renamed := func(e *existing) { e.plan.Name = types.StringValue("other") }
	triggers := func(e *existing) { e.plan.Triggers = types.MapValueMust(types.StringType, nil) }
	givenUp := func(e *existing) { e.isGivenUp, e.isRead = true, true }
	newProject := func(e *existing) { e.isNewProject = true }
	newPrompt, noPrompt := prompt(types.StringValue("B")), prompt(types.StringNull())
	hasUnknown := func(e *existing) { e.hasUnknown = true }
	at := func(attribute string) []path.Path { return []path.Path{path.Root(attribute)} }
	replaced := func(attribute string) change { return change{effect: replace, replacedAt: at(attribute)} }
	closed := func(attribute string, mayBeSame bool) change {
		return change{effect: replaceClosed, replacedAt: at(attribute), mayBeSame: mayBeSame}
	}
	for name, test := range map[string]struct {
		edits []edit
		want  change
	}{
		"nothing":                        {nil, change{}},
		"an active job":                  {[]edit{active}, change{isWaited: true}},
		"… without a wait":               {[]edit{active, unwaited}, change{}},
		"a job that failed":              {[]edit{failed}, change{failsApply: true}},
		"… and only warns":               {[]edit{failed, onFailure(onWarn)}, change{}},
		"… and nobody waited":            {[]edit{failed, unwaited}, change{failedUnwaited: true}},
		"… and is retried":               {[]edit{failed, onFailure(onRetry)}, replaced("status")},
		"a request given up":             {[]edit{givenUp}, replaced("status")},
		"triggers":                       {[]edit{triggers}, replaced("triggers")},
		"another name":                   {[]edit{renamed}, replaced("name")},
		"another project":                {[]edit{newProject}, replaced("project_id")},
		"an imported job":                {[]edit{imported, unnamed, triggers}, change{effect: storePrompt}},
		"… whose prompt is ignored":      {[]edit{imported, noPrompt}, change{}},
		"an ignored prompt":              {[]edit{noPrompt}, change{}},
		"a new prompt":                   {[]edit{newPrompt}, change{effect: sendMessage}},
		"… for an active job":            {[]edit{newPrompt, active}, change{effect: sendMessage, isWaited: true}},
		"… and triggers":                 {[]edit{newPrompt, triggers}, replaced("triggers")},
		"… for a job that failed":        {[]edit{newPrompt, failed}, closed("prompt", false)},
		"… for an archived one":          {[]edit{newPrompt, archived}, closed("prompt", false)},
		"… for one that refuses":         {[]edit{newPrompt, refuses}, closed("prompt", false)},
		"… that was sent before":         {[]edit{newPrompt, refuses, foreseen(send.AlreadySent)}, change{effect: sendMessage}},
		"… that may have been sent":      {[]edit{newPrompt, refuses, foreseen(send.EarlierUnknown)}, change{effect: sendMessage}},
		"… while one may get a response": {[]edit{newPrompt, refuses, foreseen(send.Waiting)}, change{effect: sendMessage}},
		"… that failed, and is retried":  {[]edit{newPrompt, failed, onFailure(onRetry)}, replaced("status")},
		"… but may get a response":       {[]edit{newPrompt, failed, onFailure(onRetry), foreseen(send.Waiting)}, change{effect: sendMessage}},
		"… and the record not known":     {[]edit{newPrompt, refuses, hasUnknown}, closed("prompt", true)},
		"not known yet":                  {[]edit{prompt(types.StringUnknown())}, change{effect: sendMessage}},
		"… for a job that has failed":    {[]edit{prompt(types.StringUnknown()), failed}, closed("prompt", true)},
		"write-only, for one that fails": {[]edit{writeOnly(types.StringValue("B")), failed}, closed("prompt_wo_hash", false)},
		"… not known yet":                {[]edit{writeOnly(types.StringUnknown()), failed}, closed("prompt_wo_hash", true)},
		"on_failure is not known yet":    {[]edit{failed, mayRetry}, change{effect: replace, replacedAt: at("status"), mayBeSame: true}},
		"… of a job that has not failed": {[]edit{mayRetry}, change{}},
	} {
		state := jobModel{
			Name: types.StringValue("docs"), Prompt: types.StringValue("A"), arguments: arguments{Triggers: types.MapNull(types.StringType)},
			shownJob: shownJob{ID: types.StringValue("J"), Status: types.StringValue(string(agentapi.StatusCompleted))},
		}
		plan := state
		e := existing{plan: &plan, state: &state, marks: new(messageMarks), options: waitOptions{enabled: true, onFailure: onError}}
		for _, edit := range test.edits {
			edit(&e)
		}
		if diff := cmp.Diff(test.want, e.decide(), cmp.AllowUnexported(change{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What a Delete does with the name, by what the planning calls have told it.
func TestReplacement_fate(t *testing.T) {
	t.Parallel()
	of := projectAndName{"p", "docs"}
	other, elsewhere, notKnown := &projectAndName{"p", "other"}, &projectAndName{"q", "docs"}, &projectAndName{"p", ""}
	for name, row := range map[string]struct {
		carried replacement
		want    journal.Fate
	}{
		"destroyed":                                   {replacement{}, journal.Leave},
		"a first planning call without a second":      {replacement{OldJob: "J"}, journal.Leave},
		"replaced, by the same name":                  {replacement{OldJob: "J", Next: &of}, journal.Release},
		"replaced, by another name":                   {replacement{OldJob: "J", Next: other}, journal.Leave},
		"replaced, in another project":                {replacement{OldJob: "J", Next: elsewhere}, journal.Leave},
		"tainted":                                     {replacement{Next: &of}, journal.Keep},
		"tainted, and the next name is not known yet": {replacement{Next: notKnown}, journal.Keep},
		"tainted, and another name":                   {replacement{Next: other}, journal.Leave},
		"tainted, and another project":                {replacement{Next: elsewhere}, journal.Leave},
		"because of a value that is not known yet":    {replacement{OldJob: "J", MayBeSame: true, Next: &of}, journal.Keep},
		"because the name is not known yet":           {replacement{OldJob: "J", MayBeSame: true, Next: notKnown}, journal.Keep},
		"because of both, and by another name":        {replacement{OldJob: "J", MayBeSame: true, Next: other}, journal.Leave},
		"replaced, and the project is not known yet":  {replacement{OldJob: "J", Next: &projectAndName{"", "docs"}}, journal.Release},
	} {
		if got := row.carried.fate(of); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}
