// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/place"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// object is a resource as a configuration has it.
type object fakecli.Resource

// life is a state and its journal over many runs of a CLI, each with a process for the plan and one for the apply.
type life struct {
	t      *testing.T
	s      *harness.Service
	folder string // of the journal
	config attrs
	state  fakecli.State
	past   []fakecli.State // before each run
	giveUp []tftypes.Value // ids of requests
	isTest bool            // all runs are of one "terraform test"
}

// step is a run: a plan, and its apply if that does not fail.
type step struct {
	before, meanwhile func(l *life) // before the plan, and between it and the apply
	objects           []object
	planOnly          bool
	unconfigured      bool     // the plan does not know the provider's key yet
	once              bool     // the apply does not plan again, as with some hosts
	says              []string // severity and summary of each diagnostic, or other words in it
	creates, messages int      // so far
	after             func(l *life)
}

func newLife(t *testing.T, s *harness.Service, folder string) *life {
	config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": folder + stateName}})
	return &life{t: t, s: s, folder: folder, state: fakecli.State{}, config: config}
}

// play plays lives, each with its own service, journal and clock.
func play(t *testing.T, lives map[string][]step) {
	t.Helper()
	for name, steps := range lives {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			harness.Bubble(t, byPrompt, func(t *testing.T, s *harness.Service, _ *fakecli.CLI) {
				l := newLife(t, s, folder)
				for i, step := range steps {
					l.play(i, step)
				}
			})
		})
	}
}

func (l *life) play(i int, s step) {
	l.t.Helper()
	l.past = append(l.past, maps.Clone(l.state))
	if s.before != nil {
		s.before(l)
	}
	diags := l.run(cli.Run(fmt.Sprint("run ", i)), s)
	isSaid := func(words string, d *tfprotov6.Diagnostic) bool {
		return strings.Contains(fakecli.Text([]*tfprotov6.Diagnostic{d}), words)
	}
	if !slices.EqualFunc(s.says, diags, isSaid) {
		l.t.Errorf("step %d does not say %q, but:\n%s", i, s.says, fakecli.Text(diags))
	}
	sent := l.s.Counts()
	if diff := cmp.Diff([2]int{s.creates, s.messages}, [2]int{sent.Create, sent.Message}); diff != "" {
		l.t.Errorf("step %d: creates and messages so far (-want +got):\n%s%s", i, diff, fakecli.Text(diags))
	}
	for address, o := range l.state { // a state of a thousand jobs has a thousand of them
		if private := o.Private; len(private) > 200 {
			l.t.Errorf("step %d: the private state of %s has %d bytes: %s", i, address, len(private), private)
		}
	}
	if s.after != nil {
		s.after(l)
	}
}

// connect starts a process.
func (l *life) connect(run cli.Run, command string) (*fakecli.CLI, *cli.Process) {
	l.t.Helper()
	if len(l.giveUp) > 0 {
		forget := tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, l.giveUp)
		l.config["journal"] = fakecli.With(l.config["journal"].(attrs), attrs{"forget": forget})
	}
	if l.isTest {
		run, command = "test", "test"
	}
	process, c := harness.Process(run), &fakecli.CLI{T: l.t}
	process.Command = command
	c.ConnectTo(l.t.Context(), provider.New("test", provider.Options{Process: process, Dial: l.s.Wire.Dial}), l.config)
	c.Forget()
	return c, process
}

func (l *life) run(run cli.Run, s step) []*tfprotov6.Diagnostic {
	l.t.Helper()
	known := l.config
	if s.unconfigured {
		l.config = fakecli.With(known, attrs{"admin_key": unknown{}})
	}
	r := &fakecli.Run{State: maps.Clone(l.state), Once: s.once}
	var resources []fakecli.Resource
	for _, o := range s.objects {
		resources = append(resources, fakecli.Resource(o))
	}
	before := l.records()
	plugin, process := l.connect(run, "plan")
	r.Plugins, l.config = []*fakecli.CLI{plugin}, known
	r.Plan(l.t.Context(), resources...)
	process.Drain(l.t.Context())
	if diff := cmp.Diff(before, l.records()); diff != "" {
		l.t.Errorf("the plan has written to the journal (-before +after):\n%s", diff)
	}
	if s.planOnly || r.Failed {
		return r.Diags
	}
	if s.meanwhile != nil {
		s.meanwhile(l)
	}
	plugin, process = l.connect(run, "apply")
	defer process.Drain(l.t.Context())
	r.Plugins = []*fakecli.CLI{plugin}
	r.Apply(l.t.Context(), resources...)
	l.state = r.State
	return r.Diags
}

// imports imports a job to an address, as an import block or the command does.
func (l *life) imports(address, id string) {
	l.t.Helper()
	c, process := l.connect("import", "import")
	if diags := c.ImportState(l.t.Context(), harness.Project+"/"+id); fakecli.Failed(diags) {
		l.t.Error(fakecli.Text(diags))
	}
	process.Drain(l.t.Context())
	l.state[address] = &fakecli.Instances{Instance: c.Instance}
}

// lost is a state that is lost.
func lost(l *life) { l.state = fakecli.State{} }

// asBefore is a state that is restored as it was before a step.
func asBefore(step int) func(*life) {
	return func(l *life) { l.state = maps.Clone(l.past[step]) }
}

// forgets gives up the last request of each name.
func forgets(l *life) {
	for _, r := range l.records() {
		l.giveUp = append(l.giveUp, tftypes.NewValue(tftypes.String, r.Last.ID))
	}
}

// journal is the journal as another run opens it.
func (l *life) journal() *journal.Journal {
	l.t.Helper()
	location, err := place.ParseURL(l.folder + stateName)
	service, _ := url.Parse(l.s.URL)
	if err != nil {
		l.t.Fatal(err)
	}
	process := harness.Process("another")
	return journal.Open(process, journal.Options{Place: place.Find(location, service, process), RequestTimeout: time.Hour})
}

// records are those of the journal, as their keys are.
func (l *life) records() []*journal.Record {
	l.t.Helper()
	all, err := l.journal().All(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return all
}

// has asserts the names of the journal, each with the number of its job, and an exclamation mark if it is released.
func has(want ...string) func(*life) {
	return func(l *life) {
		l.t.Helper()
		numbers := map[string]int{"": 0}
		for i, job := range l.s.Jobs() {
			numbers[job.ID] = i + 1
		}
		var got []string
		for _, r := range l.records() {
			got = append(got, fmt.Sprint(r.Name, " ", numbers[r.JobID], map[bool]string{true: "!"}[r.IsFreed()]))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			l.t.Errorf("records (-want +got):\n%s", diff)
		}
	}
}

// becomes gives the job of the resource another status.
func becomes(status string) func(*life) {
	return func(l *life) { l.s.SetStatus(l.state["docs"].Get("id").(string), status) }
}

type (
	attrs   = fakecli.Attrs
	unknown = fakecli.Unknown
)

// stateName follows the folder of a journal: local states may share one.
const stateName = "?state=a"

// byPrompt lets a job go as its prompt says.
func byPrompt(prompt string, _ int) simulator.Script {
	switch {
	case strings.Contains(prompt, "fail"):
		return simulator.Script{Duration: 100 * time.Millisecond, Status: "failed"}
	case strings.Contains(prompt, "once"):
		return simulator.Script{Duration: time.Second, NoMessages: 409}
	case strings.Contains(prompt, "sole"):
		return simulator.Script{Duration: time.Second, NoMessages: 400}
	case strings.Contains(prompt, "slow"):
		return simulator.Script{Duration: time.Hour}
	case strings.Contains(prompt, "no status"):
		return simulator.Script{Duration: time.Second, Extra: attrs{"status": simulator.Omit{}}}
	case strings.Contains(prompt, "late link"):
		return simulator.Script{Duration: time.Second, LinkAfter: 5 * time.Second}
	case strings.Contains(prompt, "later link"):
		return simulator.Script{Duration: time.Second, LinkAfter: 30 * time.Second}
	case strings.Contains(prompt, "linked"):
		return simulator.Script{Duration: time.Second, Status: "archived", Extra: attrs{"prLink": "https://example.com/pull/1"}}
	case strings.Contains(prompt, "odd link"):
		return simulator.Script{Duration: time.Second, Extra: attrs{"prLink": "/pull/1"}}
	default:
		return simulator.Script{Duration: time.Second}
	}
}

// ended is a job that somebody else has started and that is over.
func ended(s *harness.Service) string {
	id := s.Create(harness.Project, "from elsewhere").ID
	s.SetStatus(id, "completed")
	return id
}
