// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// red is a job whose apply fails, and a way out that the error names. Its fields are what its block has beside its name; the first line of
// each is the prompt.
type red struct {
	name   string
	first  string // before; empty: there is no job yet
	second string // with -replace, in an apply whose state is then lost
	setup  string // a command about it, such as state rm
	isGone bool   // the service has forgotten the job
	block  string // fails
	error  string

	ways  []string // what the error says, as patterns: a command, an option or a variable in it is followed, and other words are what then does
	guide string   // what the guide says to run first, with prevent_destroy
	then  string   // empty: as before
	want  [][]string
}

const (
	givingUp  = `AGENT_JOURNAL_FORGET=(\w+)`
	untainted = `\n  terraform (untaint) ADDRESS`
	removed   = `\n  terraform (state rm) ADDRESS`
	imported  = `\n  terraform (import) ADDRESS (\S+)`
	replaced  = `\n  terraform apply (-replace)=ADDRESS`

	failed, running = "Agent job failed", "Agent job still running"
	unknown         = "Outcome of agent job create unknown"
	unknownMessage  = "Outcome of message to agent job unknown"
	otherPrompt     = "Name has a running agent job"
	otherJob        = "Name has another agent job"
	notAccepted     = "Message to agent job not accepted"
	foreign         = "Agent job of an earlier run not readable"

	createFirst = "\nlifecycle { create_before_destroy = true }"
	protected   = "\nlifecycle { prevent_destroy = true }"
	unrecorded  = "\nprovider = agent.off"
	short       = "\ntimeouts {\n  create = \"2s\"\n  update = \"2s\"\n}"
	kept        = "\nwait { on_failure = \"warn\" }"
	triggered   = "\ntriggers = { v = \"2\" }"
)

// What makes a request go wrong while the applies are to fail, by words in its prompt.
const (
	fails, hangs, unanswered, refused, invalid = "this fails", "this hangs", "this is not answered", "this is refused", "this is invalid"
)

// A job that is at work, until the applies are to succeed: another prompt stops, whatever becomes of one that has completed.
const (
	works  = "this takes a while"
	atWork = works + "\nwait { enabled = false }"
)

var waysOut = []red{
	{name: "failed", block: fails, error: failed, ways: []string{givingUp}, want: [][]string{{fails}, {fails}}},
	{name: "failed_edited", block: fails, error: failed, ways: []string{"change the prompt"}, then: "better", want: [][]string{{"better"}, {fails}}},
	{name: "failed_kept", block: fails, error: failed, ways: []string{`set on_failure = "warn" in the wait block`}, then: fails + kept, want: [][]string{{fails}}},
	{
		name: "failed_protected", block: fails + protected, error: failed, guide: "state rm", ways: []string{`set on_failure = "warn"`},
		then: fails + protected + kept, want: [][]string{{fails}},
	},
	{name: "failed_unrecorded", block: fails + unrecorded, error: failed, ways: []string{untainted, replaced}, want: [][]string{{fails}, {fails}}},

	{name: "timeout", block: hangs + short, error: running, ways: []string{"the next apply keeps the job"}, want: [][]string{{hangs}}},
	{name: "timeout_protected", block: hangs + short + protected, error: running, guide: "state rm", ways: []string{"the next apply keeps the job"}, want: [][]string{{hangs}}},
	{name: "timeout_given_up", block: hangs + short, error: running, ways: []string{givingUp}, want: [][]string{{hangs}, {hangs}}},
	{name: "timeout_triggers", block: hangs + short, error: running, ways: []string{"change triggers"}, then: hangs + triggered, want: [][]string{{hangs}, {hangs}}},
	{name: "timeout_unrecorded", block: hangs + short + unrecorded, error: running, ways: []string{untainted, replaced}, want: [][]string{{hangs}, {hangs}}},

	{name: "message_timeout", first: "first", block: hangs + short, error: running, ways: []string{"The next apply resumes waiting"}, want: [][]string{{"first", hangs}}},
	{name: "message_timeout_given_up", first: "first", block: hangs + short, error: running, ways: []string{givingUp}, want: [][]string{{"first", hangs}, {hangs}}},
	{name: "message_failed", first: "first", block: fails, error: failed, ways: []string{givingUp}, want: [][]string{{"first", fails}, {fails}}},
	{name: "message_failed_edited", first: "first", block: fails, error: failed, ways: []string{"change the prompt"}, then: "better", want: [][]string{{"better"}, {"first", fails}}},

	{name: "unknown", block: unanswered, error: unknown, ways: []string{givingUp}, want: [][]string{{unanswered}, {unanswered}}},
	{name: "unknown_imported", block: unanswered, error: unknown, ways: []string{imported}, want: [][]string{{unanswered}}},
	{
		name: "unknown_replaced", first: "first", block: unanswered + triggered + createFirst, error: unknown, ways: []string{removed, imported},
		want: [][]string{{"first"}, {unanswered}},
	},
	{
		name: "message_unknown", first: "first", block: unanswered, error: unknownMessage, ways: []string{removed, imported},
		want: [][]string{{"first", unanswered}},
	},
	{
		name: "message_unknown_edited", first: "first", block: unanswered, error: unknownMessage, ways: []string{"change the prompt"},
		then: "again", want: [][]string{{"first", unanswered, "again"}},
	},

	{
		name: "other_prompt", first: atWork, setup: "state rm", block: "other", error: otherPrompt, ways: []string{"restore its prompt and apply"},
		then: works, want: [][]string{{works}},
	},
	{
		name: "other_prompt_tainted", first: atWork, setup: "taint", block: "other" + createFirst, error: otherPrompt, ways: []string{"Once the job has finished, apply again"},
		want: [][]string{{"other"}, {works}},
	},
	{
		name: "other_prompt_triggers", first: atWork, setup: "state rm", block: "other", error: otherPrompt, ways: []string{"change triggers"},
		then: "other" + triggered, want: [][]string{{"other"}, {works}},
	},
	{name: "other_job", first: "first", second: "second", block: "second", error: otherJob, ways: []string{removed, imported}, want: [][]string{{"first"}, {"second"}}},
	{name: "other_job_edited", first: "first", second: "first", block: "second", error: otherJob, ways: []string{removed, imported}, want: [][]string{{"first"}, {"first"}}},
	{name: "other_job_given_up", first: "first", second: "first", block: "second", error: otherJob, ways: []string{givingUp}, want: [][]string{{"first"}, {"first", "second"}}},

	{name: "refused", first: "first", block: refused, error: notAccepted, ways: []string{"The next apply starts a new job"}, want: [][]string{{"first"}, {refused}}},
	{name: "refused_restored", first: "first", block: refused, error: notAccepted, ways: []string{"restore the earlier prompt and apply"}, then: "first", want: [][]string{{"first"}}},
	{
		name: "refused_ignored", first: "first", block: refused, error: notAccepted, ways: []string{"add the prompt to ignore_changes"},
		then: refused + "\nlifecycle { ignore_changes = [prompt] }", want: [][]string{{"first"}},
	},
	{name: "invalid", first: "first", block: invalid, error: notAccepted, ways: []string{"The next apply sends the prompt again"}, then: "valid", want: [][]string{{"first", "valid"}}},
	{name: "invalid_triggers", first: "first", block: invalid, error: notAccepted, ways: []string{"change triggers"}, then: invalid + triggered, want: [][]string{{"first"}, {invalid}}},
}

// Those that take a while, because one 404 proves nothing.
var waysOutIfGone = []red{
	{name: "gone", first: "first", isGone: true, block: "second", error: "Agent job not found", ways: []string{givingUp}, want: [][]string{{"second"}}},
	{name: "gone_unrecorded", first: "first" + unrecorded, isGone: true, block: "first" + unrecorded, error: "Agent job not found", ways: []string{replaced}, want: [][]string{{"first"}}},
}

var waysOutIfGoneAndLost = []red{
	{name: "gone_and_lost", first: "first", isGone: true, setup: "state rm", block: "first", error: foreign, ways: []string{givingUp}, want: [][]string{{"first"}}},
	{
		name: "gone_and_tainted_unrecorded", first: "first" + unrecorded, isGone: true, setup: "taint", block: "first" + unrecorded, error: foreign, ways: []string{untainted, replaced},
		want: [][]string{{"first"}},
	},
}

// Whoever follows an error to the letter ends green, and pays for what it says alone. All jobs are in one configuration: a CLI takes longer
// to start than they do.
func TestAccWaysOut_X19(t *testing.T) {
	t.Parallel()
	for name, all := range map[string][]red{"at once": waysOut, "after ten seconds": waysOutIfGone, "after a minute": waysOutIfGoneAndLost} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "after a minute" && os.Getenv("EXPLORE") == "" {
				t.Skip("EXPLORE is not set: it waits for a minute")
			}
			playWaysOut(t, all)
		})
	}
}

func playWaysOut(t *testing.T, all []red) {
	s := start(t, 0)
	service := new(failing)
	service.Server = simulator.New(simulator.Options{Key: canary, Script: service.script})
	s.service = service.Server
	server := httptest.NewServer(service)
	defer server.Close()
	s.env = append(s.env, "AGENT_BASE_URL="+server.URL)
	configure := func(block func(r red) string) { s.write("main.tf", redModule(all, block)) }
	stateFile := filepath.Join(s.dir, "terraform.tfstate")
	address := func(r red) string { return "agent_job." + r.name }

	configure(func(r red) string { return r.first })
	s.call("apply", "-auto-approve")
	options := []string{"apply", "-auto-approve"}
	for _, r := range all {
		if r.second != "" {
			options = append(options, "-replace="+address(r))
		}
	}
	if len(options) > 2 {
		before, err := os.ReadFile(stateFile)
		if err != nil {
			t.Fatal(err)
		}
		configure(func(r red) string { return cmp.Or(r.second, r.first) })
		s.call(options...)
		s.write("terraform.tfstate", string(before))
	}
	for _, r := range all {
		if r.setup != "" {
			s.shell("terraform " + r.setup + " " + address(r))
		}
	}
	for _, j := range s.service.Jobs() {
		if slices.ContainsFunc(all, func(r red) bool { return r.isGone && strings.HasPrefix(j.Prompts[0], r.name+": ") }) {
			s.service.Forget(j.ID)
		}
	}

	configure(func(r red) string { return r.block })
	service.isRed.Store(true)
	said := s.diagnostics("apply", "-auto-approve", "-json")
	service.isRed.Store(false)
	for _, j := range s.service.Jobs() {
		if j.Status == "active" {
			s.service.SetStatus(j.ID, "completed")
		}
	}

	apply, forget := []string{"apply", "-auto-approve"}, []string{}
	for _, r := range all {
		text := said[address(r)][r.error]
		if r.guide != "" {
			s.shell("terraform " + r.guide + " " + address(r))
		}
		for _, way := range r.ways {
			found := regexp.MustCompile(way).FindStringSubmatch(text)
			switch {
			case found == nil:
				t.Errorf("%s: the error does not say %q: %s", r.name, way, said[address(r)])
			case way == givingUp:
				forget = append(forget, found[1])
			case way == replaced:
				apply = append(apply, found[1]+"="+address(r))
			case way == imported:
				jobs := slices.DeleteFunc(s.service.Jobs(), func(j simulator.Job) bool { return !strings.HasPrefix(j.Prompts[0], r.name+": ") })
				s.shell("terraform import " + address(r) + " " + strings.Replace(found[2], "JOB_ID", jobs[len(jobs)-1].ID, 1)) // as the dashboard shows it
			case len(found) > 1:
				s.shell("terraform " + found[1] + " " + address(r))
			}
		}
	}
	configure(func(r red) string { return cmp.Or(r.then, r.block) })
	s.env = append(s.env, "AGENT_JOURNAL_FORGET="+strings.Join(forget, ","))
	if shown, ok := s.try(apply...); !ok {
		_, errors, _ := strings.Cut(shown, "\nError: ")
		t.Fatalf("the apply fails: %s", errors)
	}
	if shown, ok := s.try("plan", "-detailed-exitcode"); !ok {
		t.Errorf("the next plan is not empty:\n%s", shown)
	}

	got := map[string][][]string{}
	for _, j := range s.service.Jobs() {
		name, _, _ := strings.Cut(j.Prompts[0], ": ")
		for i := range j.Prompts {
			j.Prompts[i] = strings.TrimPrefix(j.Prompts[i], name+": ")
		}
		got[name] = append(got[name], j.Prompts)
	}
	for _, r := range all {
		slices.SortFunc(got[r.name], slices.Compare)
		slices.SortFunc(r.want, slices.Compare)
		if diff := gocmp.Diff(r.want, got[r.name]); diff != "" {
			t.Errorf("%s: prompts of its jobs (-want +got):\n%s", r.name, diff)
		}
	}
}

// redModule is a root module with all jobs that have a block.
func redModule(all []red, block func(r red) string) string {
	text := `
terraform {
  required_providers {
    agent = { source = "agentjobs/agent" }
  }
}
`
	for _, more := range []string{"", "\n  alias = \"off\"\n  journal { enabled = false }"} {
		text += "provider \"agent\" {\n  max_new_jobs = 100\n  max_messages = 100\n  poll {\n    min_interval = \"20ms\"\n    max_interval = \"100ms\"\n  }" + more + "\n}\n"
	}
	for _, r := range all {
		if prompt, more, _ := strings.Cut(block(r), "\n"); prompt != "" {
			text += fmt.Sprintf("resource \"agent_job\" %[1]q {\n  name = %[1]q\n  prompt = %[2]q\n%[3]s\n}\n", r.name, r.name+": "+prompt, more)
		}
	}
	return text
}

// diagnostics runs a command and returns the details of what it says, by address and summary.
func (s *trial) diagnostics(args ...string) map[string]map[string]string {
	s.Helper()
	shown, _ := s.try(args...)
	all := map[string]map[string]string{}
	for line := range strings.Lines(shown) {
		var message struct {
			Diagnostic struct{ Address, Summary, Detail string }
		}
		if d := &message.Diagnostic; json.Unmarshal([]byte(line), &message) == nil && d.Summary != "" {
			if all[d.Address] == nil {
				all[d.Address] = map[string]string{}
			}
			all[d.Address][d.Summary] = d.Detail // of a plan and its apply, the latter
		}
	}
	if len(all) == 0 { // perhaps the CLI has crashed
		s.Fatalf("%s says nothing, but:\n%s", args[0], shown)
	}
	return all
}

// seen is long enough for a wait to see that a message had its effect.
const seen = time.Second / 2

// failing is a service that fails, while isRed, as prompts say.
type failing struct {
	*simulator.Server

	isRed atomic.Bool
}

func (f *failing) script(prompt string, _ int) simulator.Script {
	switch {
	case f.isRed.Load() && strings.Contains(prompt, fails):
		return simulator.Script{Duration: seen, Status: "failed"}
	case f.isRed.Load() && strings.Contains(prompt, hangs), strings.Contains(prompt, works):
		return simulator.Script{Duration: time.Hour}
	}
	return simulator.Script{Duration: seen}
}

func (f *failing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	has := func(words string) bool { return f.isRed.Load() && bytes.Contains(body, []byte(words)) }
	switch {
	case has(unanswered):
		f.Server.ServeHTTP(httptest.NewRecorder(), r)
		http.Error(w, "", http.StatusInternalServerError)
	case has(refused):
		http.Error(w, `{"error":"job is closed"}`, http.StatusConflict)
	case has(invalid):
		http.Error(w, `{"error":"prompt is long"}`, http.StatusRequestEntityTooLarge)
	default:
		f.Server.ServeHTTP(w, r)
	}
}
