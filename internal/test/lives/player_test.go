// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race

package lives

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

const (
	finish  = 3 * time.Second  // how often active jobs finish in a run
	timeout = 90 * time.Second // longer than a 404 must persist before it counts
	pause   = wait.Grace       // between runs: a final status then counts
)

const (
	folder = ".agent-journal"
	kept   = ".kept" // while a dead process runs out

	// The CLI plans again while applying, and refuses that a job is replaced which the plan has kept.
	inconsistent = "ERROR: " + fakecli.Inconsistent
	notNamed     = "the plan does not name the job of an earlier run"
)

// giveUp is what an error says of a request that is in the way.
var giveUp = regexp.MustCompile(`AGENT_JOURNAL_FORGET=(\w+)`)

// ofOthers is what says that other runs have sent something.
var ofOthers = regexp.MustCompile(`(earlier|another|Earlier|Another|other) runs?\b`)

// player plays a life.
type player struct {
	testing.TB

	life      life
	sim       *simulator.Server
	wire      *faultserver.Server
	cli       *fakecli.CLI
	processes int
	wrong     []string // what fakecli found

	stored  []fakecli.Instance // before each turn
	kill    func()             // the provider process
	dies    bool               // it is killed before it connects to the service
	dead    bool               // it was killed
	stopped string             // the id that the last error named
	asked   string             // the request that the user asks for
	created bool               // it was last sent as a create
	may     bool               // it may be sent
	broken  bool               // an earlier turn has left what its state lacks
}

// observed is what became of a turn.
type observed struct {
	creates, messages int
	failed, replaces  bool
	refused           bool
	plan, all         string // diagnostics
}

// Errorf records what fakecli asserts: rapid must see it as part of this life.
func (p *player) Errorf(format string, args ...any) {
	p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
}

func (p *player) must(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		p.Fatal(err)
	}
}

// breach is a turn that the model does not expect.
type breach struct {
	number   int
	observed observed
	wrong    []string
}

// playLife plays a life up to its first breach, or returns nil. It counts the rows of the model
// that applied.
func playLife(t *testing.T, l life, rows map[string]int) (b *breach) {
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chdir(dir); err != nil { // the default journal is there
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	synctest.Test(t, func(t *testing.T) {
		p := &player{TB: t, life: l}
		p.sim = harness.NewSimulator(harness.Always(simulator.Script{Duration: 1000 * time.Hour, NoMessages: l.Refuses}))
		p.wire = faultserver.New(t, p.sim, faultserver.Options{InMemory: true})
		p.cli = &fakecli.CLI{T: p}
		p.connect("", turn{}, 0)
		p.cli.Forget()
		m := &model{journal: l.Journal, refusing: l.Refuses, rows: rows, records: map[string]*record{}}
		for i, turn := range l.Turns {
			if b = p.check(m, turn, i+1); b != nil {
				return
			}
			time.Sleep(pause)
		}
	})
	return b
}

// check plays a turn, and compares it with the model.
func (p *player) check(m *model, t turn, number int) *breach {
	p.happen(t.Meanwhile)
	t.Ignored = t.Ignored && t.Does == apply && t.OnFailure != "retry" && m.state != nil && !m.state.tainted && (m.state.prompt == "" || m.state.triggers == t.Triggers) && (m.state.name == noName || m.state.name == t.Name)
	t.Unknown = t.Unknown && !t.Ignored
	statuses := map[string]string{} // as they are now
	for _, job := range p.sim.Jobs() {
		statuses[job.ID] = job.Status
	}
	if m.state != nil && m.state.job != "" && statuses[m.state.job] == "" && t.Goes != outlasts { // its refresh lasts until they have finished
		for id, status := range statuses {
			if !ended(status) {
				statuses[id] = cmp.Or(t.Goes, completed)
			}
		}
	}
	again := t.OnFailure == "retry" && (statuses[p.newest()] == failed || p.cli.Get("status") == failed)
	p.stored = append(p.stored, p.cli.Instance)
	x := m.play(t, number, func(job string) string {
		if status, known := statuses[job]; known {
			return status
		}
		return gone
	})
	got := p.play(t, number)
	p.once(t, got, again, x.killed)
	m.learn(p.newest())

	want := func(right bool, format string, args ...any) {
		if !right {
			p.Errorf(format, args...)
		}
	}
	want(got.replaces == x.replaces, "the plan replaces the job: %t, want %t", got.replaces, x.replaces)
	want(got.creates == x.creates, "%d creates, want %d", got.creates, x.creates)
	want(got.messages == x.messages, "%d messages, want %d", got.messages, x.messages)
	want(x.killed || x.run == either || got.failed == (x.run == fails), "the run failed: %t, but the model says that it %s", got.failed, x.run)
	want(!x.unconfirmed || strings.Contains(got.plan, "unconfirmed"), "the plan does not say that a message is unconfirmed")
	want(!x.warns || got.plan != "", "the plan says nothing")
	want(t.Does == replace || !strings.Contains(got.plan, "Apply sends nothing") || got.creates+got.messages == 0, // the provider cannot see -replace
		"the plan says that the apply sends nothing")
	want(x.want == rejected || !strings.Contains(got.all, inconsistent), "inconsistent final plan")
	p.broken = p.broken || p.life.Journal == off || t.changesState() || t.Meanwhile == gone
	want(p.broken || x.killed || !ofOthers.MatchString(got.all), "a run warns of others that was preceded by no broken one")
	p.broken = p.broken || t.Killed || t.Post != "" || t.Unapplied
	for _, job := range x.names {
		want(strings.Contains(got.plan, job), notNamed)
	}
	job, tainted := "", false
	if m.state != nil {
		job, tainted = m.state.job, m.state.tainted
	}
	id, _ := p.cli.Get("id").(string)
	want(id == job, "the state has another job, or one too many or too few")
	want(p.cli.Tainted == tainted, "tainted: %t, want %t", p.cli.Tainted, tainted)
	if len(p.wrong) == 0 {
		return nil
	}
	return &breach{number, got, p.wrong}
}

// once asserts the promise without the model: a request that the service may have accepted
// is not sent again before the user asks for something else.
func (p *player) once(t turn, got observed, again, killed bool) {
	request := fmt.Sprint(t.prompt(), t.Triggers, t.Name)
	p.may = p.may || again || t.Unknown || t.Forgets || request != p.asked || t.Does == replace || t.Does == destroy || t.Does == importJob ||
		p.life.Journal == off && t.changesState()
	p.asked = request
	if got.creates+got.messages == 0 {
		return
	}
	if !p.may && p.created == (got.creates > 0) { // else it is a message to another job
		p.Errorf("sent again")
	}
	isLost := p.life.Journal == off && (t.Killed || killed || got.creates > 0 && t.Post != "")
	p.created = got.creates > 0
	p.may = got.refused || isLost
}

// learn replaces the names of jobs that were not known before the turn.
func (m *model) learn(newest string) {
	for _, r := range m.records {
		if r.job == fresh || r.job == imported {
			r.job = newest
		}
	}
	if m.state != nil && (m.state.job == fresh || m.state.job == imported) {
		m.state.job = newest
	}
}

func (p *player) newest() string {
	jobs := p.sim.Jobs()
	if len(jobs) == 0 {
		return ""
	}
	return jobs[len(jobs)-1].ID
}

// happen is what somebody else does to all jobs. A closed job stays closed.
func (p *player) happen(status string) {
	for _, job := range p.sim.Jobs() {
		switch {
		case status == gone:
			p.sim.Forget(job.ID)
		case status == "", job.Status == archived, job.Status == failed && status != archived,
			status == active && job.Status != completed: // by a message
		default:
			p.sim.SetStatus(job.ID, status)
		}
	}
}

// finish is how the active jobs go on.
func (p *player) finish(status string) {
	for _, job := range p.sim.Jobs() {
		if status != outlasts && !ended(job.Status) {
			p.sim.SetStatus(job.ID, status)
		}
	}
}

// play is a run of the CLI.
func (p *player) play(t turn, number int) (got observed) {
	c, before := p.cli, p.sim.Counts()
	if t.Does == taint {
		c.Tainted = !c.State.IsNull()
	}
	stored := c.Instance
	if t.Goes == "" {
		t.Goes = completed
	}
	running, stop := context.WithCancel(p.Context())
	defer stop()
	go func() {
		for sleep.For(running, finish) == nil {
			p.finish(t.Goes)
		}
	}()
	p.dead = false
	p.sim.ClearFaults()
	p.wire.Always(faultserver.Create, nil)
	p.wire.Always(faultserver.Message, nil)
	for _, kind := range []simulator.Kind{simulator.KindCreate, simulator.KindMessage} {
		switch t.Post {
		case "", unsent:
		case cut:
			p.wire.Always(faultserver.Kind(kind), faultserver.Effect(func(x *faultserver.Exchange) {
				p.die()
				faultserver.Reset(x)
			}))
		default:
			p.sim.Inject(simulator.Fault{Kind: kind, Status: cmp.Or(refusals[t.Post], 500), AfterEffect: t.Post == lost})
		}
	}
	say := func(diags []*tfprotov6.Diagnostic) bool {
		got.all += fakecli.Text(diags)
		got.failed = got.failed || fakecli.Failed(diags)
		for _, d := range diags {
			if found := giveUp.FindStringSubmatch(d.Detail); d.Severity == tfprotov6.DiagnosticSeverityError && found != nil && !p.dead {
				p.stopped = found[1]
			}
		}
		return !fakecli.Failed(diags)
	}
	switch t.Does {
	case stateRm:
		c.Forget()
	case restore:
		c.Instance = p.stored[max(0, number-2)]
	case importJob:
		c.Forget()
		job := p.sim.Create(harness.Project, "from elsewhere")
		p.connect("import", t, number)
		say(c.ImportState(p.Context(), harness.Project+"/"+job.ID))
	default:
		p.run(t, number, say, &got)
	}
	if p.dead || t.Killed && !t.changesState() {
		c.Instance = stored
	}
	after := p.sim.Counts()
	got.creates, got.messages = after.Create-before.Create, after.Message-before.Message
	for _, r := range p.sim.Requests()[before.Create+before.Message+before.Get:] {
		got.refused = got.refused || r.Kind != simulator.KindGet && r.Status/100 == 4
	}
	return got
}

// run is a plan and an apply, each in a process of its own.
func (p *player) run(t turn, number int, say func([]*tfprotov6.Diagnostic) bool, got *observed) {
	c, ctx := p.cli, p.Context()
	config := t.attrs()
	planned := fakecli.With(config, nil)
	if t.Unknown {
		planned[t.argument()] = fakecli.Unknown{}
	}
	if c.Ignored = nil; t.Ignored {
		c.Ignored = []string{"prompt", "prompt_wo"}
	}
	c.Forced = t.Does == replace
	sent, before := p.sim.Counts().Create+p.sim.Counts().Message, p.recorded()
	p.connect("plan", t, number)
	ok := say(c.Refresh(ctx))
	switch {
	case !ok || t.Does == refresh:
	case t.Does == destroy:
		if !c.State.IsNull() {
			ok = say(c.PlanDestroy(ctx))
		}
	default:
		ok = say(c.Plan(ctx, planned))
		got.replaces = c.Replace
	}
	got.plan = got.all
	if now := p.recorded(); now != before {
		p.Errorf("a plan wrote into the journal")
	}
	if !ok || t.Unapplied || t.Does == refresh || t.Does != destroy && c.Empty() || t.Does == destroy && c.State.IsNull() {
		return
	}
	if now := p.sim.Counts(); now.Create+now.Message > sent {
		p.Errorf("a plan sent something")
	}
	p.connect("apply", t, number)
	ctx, p.kill = context.WithCancel(ctx)
	defer p.kill()
	p.dies = t.Post == unsent
	if t.Does == destroy {
		say(c.Delete(ctx, c.PlannedPrivate))
	} else {
		say(c.Apply(ctx, config))
	}
	if p.dies = false; p.dead {
		synctest.Wait()
		p.must(os.RemoveAll(folder))
		_ = os.Rename(kept, folder)
	}
}

// recorded is what the journal has.
func (p *player) recorded() string {
	var all strings.Builder
	p.must(filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".json" {
			text, _ := os.ReadFile(path)
			fmt.Fprintf(&all, "%s: %s\n", path, text)
		}
		return err
	}))
	return all.String()
}

// die kills the provider process: what it does from now on reaches nothing.
func (p *player) die() {
	p.dead = true
	p.kill()
	_ = os.Rename(folder, kept) // unless there is no journal yet
}

// dial connects to the service, unless that kills the process.
func (p *player) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if p.dies && !p.dead {
		p.die()
	}
	if p.dead {
		return nil, errors.New("the process is dead")
	}
	return p.wire.Dial(ctx, network, address)
}

// connect starts a provider process of a run of the CLI, which loads the state.
func (p *player) connect(command string, t turn, number int) {
	p.processes++
	pid := p.processes
	process := &cli.Process{
		Run: cli.Run(fmt.Sprint(number)), Command: command, Self: cli.ProcessID{Machine: "machine", PID: pid, Start: "1"},
		Ended:    func(s cli.ProcessID) bool { return s.PID < pid },
		CLIEnded: func() bool { return false },
	}
	config := attrs{
		"base_url": p.wire.URL, "admin_key": harness.CanaryKey, "project_id": harness.Project,
		"poll": attrs{"min_interval": "1s", "max_interval": "5s"},
	}
	switch {
	case p.life.Journal == off:
		config["journal"] = attrs{"enabled": false}
	case t.Forgets && p.stopped != "":
		config["journal"] = attrs{"forget": []tftypes.Value{tftypes.NewValue(tftypes.String, p.stopped)}}
	}
	diags := p.cli.ConnectTo(p.Context(), provider.New("test", provider.Options{Process: process, Dial: p.dial}), config)
	if len(diags) > 0 {
		p.Fatal(fakecli.Text(diags))
	}
	if !p.cli.State.IsNull() {
		p.cli.Load(p.Context(), p.cli.Instance)
	}
}
