// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// What plans and applies say because of the record of a name.
const (
	adopted        = "WARNING: Agent job adopted"
	mayStop        = "WARNING: Name has a running agent job"
	stops          = "ERROR: Name has a running agent job"
	mayUnknown     = "WARNING: Outcome of agent job create unknown"
	unknownCreate  = "ERROR: Outcome of agent job create unknown"
	mayOtherJob    = "WARNING: Name has another agent job"
	getsAnother    = "WARNING: Name gets another agent job"
	otherJob       = "ERROR: Name has another agent job"
	duplicate      = "ERROR: Duplicate agent job name"
	countsAsSent   = "WARNING: Message of an earlier run counts as sent"
	notAccepted    = "ERROR: Message to agent job not accepted"
	unknownMessage = "ERROR: Outcome of message to agent job unknown"
	unconfirmed    = "WARNING: Message to agent job unconfirmed"
	notCreated     = "ERROR: Agent job not created"
	notReadable    = "ERROR: Agent job of an earlier run not readable"
	notReplaced    = "ERROR: Agent job not replaced"
	failed         = "ERROR: Agent job failed"
	hasFailed      = "WARNING: Agent job failed"
	stillRunning   = "ERROR: Agent job still running"
	newJob         = "WARNING: New prompt starts a new agent job"
	unusable       = "WARNING: Journal not usable"
)

// named is a resource whose address is its name.
func named(name, prompt string) object {
	return object{Address: name, Config: attrs{"name": name, "prompt": prompt}}
}

// with is the object with more in its block.
func (o object) with(more attrs) object {
	o.Config = fakecli.With(o.Config, more)
	return o
}

func (o object) at(address string) object { o.Address = address; return o }

// An apply adopts the job of the same request only, sends a change, and after an import sends nothing: also with an
// argument that is added later. What is not sent counts for no limit.
//
// Red without: any value and send of an argument, request and judge, any condition of promptEffect and differingArguments.
func TestAdoption_everyArgument(t *testing.T) {
	neverSent := []string{"wait", "timeouts", "name"} // a name: TestNames
	for _, a := range argumentSchemas(t) {
		name := a.Name
		if slices.Contains(neverSent, name) {
			continue
		}
		if _, known := examples[name]; !known {
			t.Errorf("%s: give it examples (arguments_test.go) if requests may differ in it, or else add it to neverSent", name)
		}
		type value struct {
			value, posts int  // posts so far
			isLost       bool // the state, and the one from before comes back
		}
		for what, steps := range map[string][]value{
			"import":       {{0, 0, false}},
			"lost create":  {{0, 1, true}, {0, 1, true}, {1, 2, false}},
			"lost message": {{0, 1, false}, {1, 2, true}, {1, 2, true}, {2, 3, false}}, // or replacement
		} {
			folder := t.TempDir()
			harness.Bubble(t, byPrompt, func(t *testing.T, s *harness.Service, _ *fakecli.CLI) {
				l := newLife(t, s, folder)
				known := l.config
				if what == "import" {
					l.imports("docs", ended(s))
				}
				for run, is := range steps {
					before, job := maps.Clone(l.state), attrs{"name": "docs", "prompt": "write", "wait": attrs{"enabled": false}}
					if name == "prompt_wo" {
						delete(job, "prompt")
					}
					job[name] = examples[name].accepted[is.value]
					l.config = known
					sent := s.Counts()
					if sent.Create+sent.Message == is.posts { // nothing is due that would count
						l.config = fakecli.With(known, attrs{"max_new_jobs": 0, "max_messages": 0})
					}
					diags := l.run(cli.Run(fmt.Sprint("run", run)), step{objects: []object{{Address: "docs", Config: job}}})
					stops := what == "lost create" && is.value > 0 && strings.HasPrefix(name, "prompt") // until a person decides
					if stops {
						is.posts = sent.Create + sent.Message
					}
					if got := s.Counts(); got.Create+got.Message != is.posts || fakecli.Failed(diags) != stops {
						t.Fatalf("%s, %s, run %d, %v: %d POSTs so far, want %d, fails %t. "+
							"Has it its own value and send (arguments.go), and simulator and client its field?\n%s",
							name, what, run, job[name], got.Create+got.Message, is.posts, stops, fakecli.Text(diags))
					}
					if field := examples[name].field; field != "" && is.posts > sent.Create+sent.Message {
						posts := slices.DeleteFunc(s.Requests(), func(r simulator.Request) bool { return r.Kind == simulator.KindGet })
						value, has := posts[len(posts)-1].Fields[field]
						got, _ := json.Marshal(value)
						want, _ := json.Marshal(job[name])
						if string(got) != string(want) || has != (job[name] != nil) {
							t.Errorf("for %s = %s, the service got %s = %s, %t", name, want, field, got, has)
						}
					}
					if is.isLost {
						l.state = before
					}
				}
			})
		}
	}
}

// injects makes the service fail, until it has shown the faults or the test mends it.
func injects(all ...simulator.Fault) func(*life) { return func(l *life) { l.s.Inject(all...) } }

func mends(l *life) { l.s.ClearFaults() }

// unanswered loses the response to the next request of a kind.
func unanswered(kind simulator.Kind) func(*life) {
	return injects(simulator.Fault{Kind: kind, Status: 500, AfterEffect: true})
}

// What becomes of a create whose name has a record, a row for each thing that an apply does, and the next one says nothing. Which record
// leads to it: TestJudge and TestJudge_beside.
func TestAdoption(t *testing.T) {
	a, b := []object{named("docs", "A")}, []object{named("docs", "B")}
	triggered := []object{named("docs", "A").with(attrs{"triggers": attrs{"v": "1"}})}
	fails := []object{named("docs", "fail")}
	retries := []object{named("docs", "fail").with(attrs{"wait": attrs{"on_failure": "retry"}})}
	mayRetry := []object{retries[0]}
	mayRetry[0].Planned = fakecli.With(mayRetry[0].Config, attrs{"wait": attrs{"on_failure": unknown{}}})
	first, ofLost := step{objects: a, creates: 1}, step{before: lost, objects: a, says: []string{adopted}, creates: 1}
	atWork := []object{named("docs", "slow").with(attrs{"wait": attrs{"enabled": false}})}
	released := func(l *life) { // by another run, from an older state
		other := *l
		other.state = maps.Clone(l.past[1])
		other.run("another", step{objects: []object{gone("docs")}})
	}
	noResponse := step{before: unanswered(simulator.KindCreate), objects: a, says: []string{unknownCreate}, creates: 1}
	play(t, map[string][]step{
		"N02 the same": {
			first, ofLost, {objects: a, creates: 1},
			{objects: b, creates: 1, messages: 1, after: has("docs 1")},
		},
		"N03 edited, and undone": {
			{objects: atWork, creates: 1}, {before: lost, objects: b, says: []string{mayStop, stops}, creates: 1},
			{objects: atWork, says: []string{adopted}, creates: 1},
		},
		"N04 other triggers": {first, {before: lost, objects: triggered, creates: 2}, {objects: triggered, creates: 2}},
		"N07 unanswered": {
			noResponse, {objects: a, says: []string{mayUnknown, unknownCreate}, creates: 1},
			{before: forgets, objects: a, creates: 2, after: has("docs 2")}, {before: lost, objects: a, says: []string{adopted}, creates: 2},
		},
		"N24 unanswered, and imported": {
			noResponse, {before: func(l *life) { importTo(l, "docs") }, objects: a, creates: 1},
			{objects: a, creates: 1, after: has("docs 1")}, ofLost,
		},
		"N12 unanswered message, and a lost state": {
			first, {before: unanswered(simulator.KindMessage), objects: b, says: []string{unknownMessage}, creates: 1, messages: 1},
			{before: lost, objects: b, says: []string{adopted}, creates: 1, messages: 1},
			{objects: b, planOnly: true, says: []string{unconfirmed}, creates: 1, messages: 1},
		},
		"N02 a failed job": {
			{objects: fails, says: []string{failed}, creates: 1}, {before: lost, objects: fails, says: []string{adopted, failed}, creates: 1},
			{before: lost, objects: retries, says: []string{failed}, creates: 2},
			{before: lost, objects: mayRetry, says: []string{failed}, creates: 3},
		},
		"N05 a job that is gone": {
			first, {before: func(l *life) { lost(l); l.s.Forget(l.s.OnlyJob(l.t).ID) }, objects: a, says: []string{notReadable}, creates: 1},
		},
		"P08 a job that is not found yet": {first, {before: func(l *life) {
			lost(l)
			injects(simulator.Fault{Kind: simulator.KindGet, Times: -1, Status: 404})(l)
			time.AfterFunc(50*time.Second, l.s.ClearFaults)
		}, objects: a, says: []string{adopted}, creates: 1}},
		"N01 a destroyed job": {first, {objects: []object{gone("docs")}, creates: 1, after: has("docs 1!")}, {objects: a, creates: 2}},
		// The plan has shown the id of the job. The apply of a host that does not plan again must not send instead.
		"a job that was released since the plan": {
			first, {before: lost, meanwhile: released, objects: a, once: true, says: []string{notCreated}, creates: 1},
		},
	})
}

// counted asserts the messages that the state counts.
func counted(want string) func(*life) {
	return func(l *life) {
		if got := l.state["docs"].Get("messages"); got != `tftypes.Number<"`+want+`">` {
			l.t.Errorf("messages is %s, want %s", got, want)
		}
	}
}

// What becomes of a message to the job of the state because of the record of the name. (M04)
//
// One that differs from the last one is sent, also if that is unknown. (N14)
func TestMessage_record(t *testing.T) {
	of := func(prompt string) []object { return []object{named("docs", prompt)} }
	first := step{objects: of("A"), creates: 1}
	sent := func(n int, prompt string) step { return step{objects: of(prompt), creates: 1, messages: n} }
	// Red without: the time of the earlier run's message in saveOutcome, by which the job's end counts at once.
	aMinuteLater := func(then func(*life)) func(*life) { return func(l *life) { time.Sleep(time.Minute); then(l) } }
	impatient := []object{named("docs", "B").with(attrs{"timeouts": attrs{"update": "1s"}})}
	replaced := of("A")
	replaced[0].Forced = true
	var other *journal.Call
	play(t, map[string][]step{
		"N12 accepted": {
			first, sent(1, "B"),
			{before: aMinuteLater(asBefore(1)), objects: impatient, says: []string{countsAsSent}, creates: 1, messages: 1, after: counted("1")},
			{objects: of("B"), creates: 1, messages: 1}, sent(2, "A"),
		},
		"N12 without a response": {
			first,
			{
				before: unanswered(simulator.KindMessage), objects: of("B"), says: []string{unknownMessage},
				creates: 1, messages: 1, after: counted("1"),
			},
			{before: asBefore(1), objects: of("B"), says: []string{unknownMessage}, creates: 1, messages: 1},
			{objects: of("B"), says: []string{unconfirmed}, creates: 1, messages: 1},
			sent(2, "C"),
		},
		"given up after its plan, by who applies a saved one": { // the message is another request
			first, {meanwhile: forgets, objects: of("B"), says: []string{"WARNING: Agent job not replaced"}, creates: 1, messages: 1},
			{objects: of("B"), creates: 1, messages: 1},
		},
		"N13 to a closed job, and the claim of another run that the plan has seen is withdrawn": {
			first,
			{
				before:    func(l *life) { becomes("failed")(l); other = claims(l, "docs") },
				meanwhile: func(*life) { other.Withdrawn() }, objects: of("B"), once: true,
				says: []string{"Outcome of another run's request unknown", notAccepted}, creates: 1,
			},
		},
		"N15 to a job that was replaced since": {
			first, {objects: replaced, creates: 2},
			{before: asBefore(1), objects: of("A"), creates: 2},
			{before: asBefore(1), objects: of("B"), says: []string{mayOtherJob, otherJob}, creates: 2},
			{before: forgets, objects: of("B"), creates: 2, messages: 1, after: has("docs 1")},
		},
		"N16 beside an unknown create": {
			first, {before: unanswered(simulator.KindCreate), objects: replaced, says: []string{unknownCreate}, creates: 2},
			{before: asBefore(1), objects: of("B"), says: []string{mayUnknown, unknownCreate}, creates: 2},
			{before: forgets, objects: of("B"), creates: 2, messages: 1, after: has("docs 1")},
		},
	})
}

// (X05) A journal that cannot be used fails no command that sends nothing, and is an error of one that sends. What a replacement cannot
// free stays in the state.
func TestUnusableJournal_S08(t *testing.T) {
	broken := func(l *life) { l.config["journal"] = attrs{"url": os.Args[0] + stateName} } // it is a file
	refused := func(l *life) { l.config["journal"] = attrs{"url": l.folder} }              // a local state needs a name there
	keepsID := func(l *life) {
		if o := l.state["docs"]; o == nil || len(o.Deposed) > 0 || o.Get("id") != l.s.OnlyJob(l.t).ID {
			l.t.Errorf("the state has lost the job: %v", o)
		}
	}
	a, b, forced := []object{named("docs", "A")}, []object{named("docs", "B")}, []object{named("docs", "A")}
	forced[0].Forced = true
	triggered := []object{named("docs", "A").with(attrs{"triggers": attrs{"v": "1"}})}
	first := step{objects: a, creates: 1}
	lives := map[string][]step{
		"-replace, broken":  {first, {before: broken, objects: forced, says: []string{notReplaced}, creates: 1, after: keepsID}},
		"triggers, refused": {first, {before: refused, objects: triggered, says: []string{notReplaced}, creates: 1, after: keepsID}},
	}
	for name, makes := range map[string]func(*life){"broken": broken, "refused": refused} {
		taints := func(l *life) { makes(l); l.state["docs"].Tainted = true }
		givesUp := func(l *life) { forgets(l); makes(l) }
		for what, then := range map[string]step{
			"a taint":             {before: taints, objects: a, says: []string{unusable, notReplaced}, creates: 1, after: keepsID},
			"nothing to do":       {before: makes, objects: a, creates: 1},
			"a forgotten request": {before: givesUp, objects: a, says: []string{unusable}, creates: 1, after: keepsID},
			"destroy":             {before: makes, objects: []object{gone("docs")}, says: []string{unusable}, creates: 1},
			"message":             {before: makes, objects: b, says: []string{unusable, notAccepted}, creates: 1},
		} {
			lives[what+", "+name] = []step{first, then}
		}
		lives["create, "+name] = []step{{before: makes, objects: a, says: []string{unusable, notCreated}}}
	}
	play(t, lives)
}
