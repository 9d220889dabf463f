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
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

const (
	finish  = 3 * time.Second   // how often active jobs finish in a run
	timeout = 90 * time.Second  // longer than a 404 must persist before it counts
	pause   = agentapi.StaleFor // between runs: a final status then counts

	folder = ".agent-journal"
	kept   = ".kept" // while a dead process runs out
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
	job       fakecli.Instance // in the state
	processes int
	wrong     []string // what fakecli found

	ended   int                // processes of earlier plans and applies
	stored  []fakecli.Instance // before each turn
	kill    func()             // the provider process
	dies    bool               // it is killed before it connects to the service
	dead    bool               // it was killed
	stopped string             // the id that the last error named
	asked   string             // the request that the user asks for
	of      string             // its triggers and name
	may     bool               // it may be sent
	broken  bool               // an earlier turn has left what its state lacks
	known   map[string]bool    // jobs

	triggered map[string]bool // jobs that were started with triggers
	current   []string        // jobs of the name and triggers that the user has now
}

// observed is what became of a turn.
type observed struct {
	creates, messages int
	failed            bool
	refused           bool
	plan, all         string // diagnostics
}

func (p *player) want(right bool, format string, args ...any) {
	if !right {
		p.Errorf(format, args...)
	}
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

// breach is a turn after which something is wrong.
type breach struct {
	number   int
	observed observed
	wrong    []string
}

// playLife plays a life up to its first breach, or returns nil.
func playLife(t *testing.T, l life) (b *breach) {
	synctest.Test(t, func(t *testing.T) {
		p := &player{TB: t, life: l, known: map[string]bool{}, triggered: map[string]bool{}}
		p.must(os.RemoveAll(folder), os.RemoveAll(kept)) // of the life before
		p.sim = harness.NewSimulator(harness.Always(simulator.Script{Duration: 1000 * time.Hour, NoMessages: l.Refuses}))
		p.wire = faultserver.New(t, p.sim)
		turns := slices.Concat(l.Turns, l.ending())
		for i, turn := range turns {
			got := p.check(turn, i+1)
			if i+1 == len(turns) {
				p.checkEnd()
			}
			if len(p.wrong) > 0 {
				b = &breach{i + 1, got, p.wrong}
				return
			}
			time.Sleep(pause)
		}
	})
	return b
}

// ending are the turns after a life: whatever has happened, a person who gives up what stops an apply, and asks for
// another job, gets one.
func (l life) ending() []turn {
	last := l.Turns[len(l.Turns)-1].config
	last.NoWait, last.OnFailure = false, ""
	other := last
	other.Triggers = !last.Triggers
	return []turn{{config: last}, {config: last, Forgets: true}, {config: other}, {config: other, Forgets: true}}
}

// check plays a turn, and asserts what must follow from any other.
func (p *player) check(t turn, number int) observed {
	p.happen(t.Meanwhile)
	t.Ignored = t.Ignored && p.mayIgnore(t)
	if t.Ignored && t.Late == prompt {
		t.Late = ""
	}
	if p.job.State.IsNull() || t.Does != apply && t.Does != taint {
		t.Moves = ""
	}
	p.stored = append(p.stored, p.job)
	before, hasFailed, isUnnamed := len(p.sim.Jobs()), p.job.Get("status") == failed, p.job.Get("name") == nil
	isCreate := p.job.State.IsNull() || p.job.Tainted || t.Does == taint || t.Moves != ""
	running := p.running(t)
	got := p.play(t, number)
	for _, job := range p.sim.Jobs()[:min(before, len(p.sim.Jobs()))] { // before the run, or while a refresh lasted
		if job.Status == failed {
			hasFailed = true
			p.known[job.ID] = p.known[job.ID] || t.OnFailure == "retry" // it may be replaced
		}
		// An imported job that gets its name while its prompt is ignored takes that from another job
		// without a word.
		p.known[job.ID] = p.known[job.ID] || t.Ignored && isUnnamed
	}
	p.once(t, got, t.OnFailure == "retry" && hasFailed)
	p.remember(t, got, before)

	isSeen := t.Does != replace && t.Late != forgets // by the plan
	saysNothing := strings.Contains(got.plan, "Apply sends nothing")
	p.want(!isSeen || !saysNothing || got.creates+got.messages == 0, "the plan says that the apply sends nothing")
	// A plan that has promised the id of an adoption cannot know that its apply gives the job up.
	isGivenUpLate := isCreate && t.Late == forgets && got.creates == 0
	p.want(isGivenUpLate || !strings.Contains(got.all, fakecli.Inconsistent), "inconsistent final plan")
	p.want(!isCreate || got.messages == 0, "a create sent a message")
	for _, job := range p.sim.Jobs() {
		isBeside := got.creates > 0 && !got.refused && slices.Contains(running, job.ID) && !ended(job.Status)
		p.want(!isBeside || p.life.Journal == off, "another job was started beside one that is active, with the same triggers")
	}
	p.broken = p.broken || p.life.Journal == off || t.changesState() || t.Meanwhile == gone || t.Moves == createdFirst
	p.want(p.broken || p.dead || !ofOthers.MatchString(got.all), "a run warns of others that was preceded by no broken one")
	p.broken = p.broken || t.Killed || t.Post != "" || t.Unapplied
	applies := slices.Contains([]string{apply, replace, taint}, t.Does) && !t.Unapplied && !t.Killed && !p.dead
	if status, _ := p.job.Get("status").(string); applies && !got.failed {
		isArchived := status == archived && p.job.Get("pr_link") != nil // else it never completed
		isDone := status == completed || isArchived || ended(status) && (t.OnFailure == "warn" || t.NoWait)
		p.want(isDone || t.NoWait && !ended(status), "green, and its job is %s", status)
		p.want(!p.job.Tainted, "green, and tainted")
	}
	return got
}

// mayIgnore reports whether the CLI can ignore the prompt: it does so only for an object that stays.
func (p *player) mayIgnore(t turn) bool {
	name := p.job.Get
	return !p.job.State.IsNull() && t.Does == apply && t.OnFailure != "retry" && !p.job.Tainted && t.Moves == "" &&
		(name("name") == nil || name("name") == cmp.Or(t.Name, "docs") && (name("triggers") != nil) == t.Triggers)
}

// once asserts that a request that the service may have accepted is not sent again before the user asks for
// something else.
func (p *player) once(t turn, got observed, again bool) {
	request := fmt.Sprint(t.prompt(), t.Triggers, t.Name)
	p.may = p.may || again || t.asksForAnother() || request != p.asked ||
		p.life.Journal == off && (t.changesState() || t.Moves == createdFirst)
	p.asked = request
	if got.creates+got.messages == 0 {
		return
	}
	p.want(p.may, "sent again")
	isLost := p.life.Journal == off && (t.Killed || p.dead || got.creates > 0 && t.Post != "")
	p.may = got.refused || isLost
}

// remember notes the jobs that a state has, that a run has named, or that nobody can know.
func (p *player) remember(t turn, got observed, before int) {
	id, _ := p.job.Get("id").(string)
	p.known[id] = true
	for i, job := range p.sim.Jobs() {
		if i >= before && t.Does != importJob {
			p.triggered[job.ID] = t.Triggers
			p.current = append(p.current, job.ID)
		}
		// Beside a job that failed or was archived, or is done and has other triggers, a create sends without a word.
		isPast := job.Status == failed || job.Status == archived || job.Status == completed && p.triggered[job.ID] != t.Triggers
		if strings.Contains(got.all, job.ID) || i >= before && (t.Post != "" || t.Does == importJob) || got.creates > 0 && isPast {
			p.known[job.ID] = true
		}
	}
}

// running are the active jobs beside which the turn must not start another one: they have its name and triggers,
// and nobody has asked for another one since.
func (p *player) running(t turn) (ids []string) {
	isOther := len(p.stored) > 1 && fmt.Sprint(t.Triggers, t.Name) != p.of
	p.of = fmt.Sprint(t.Triggers, t.Name)
	if isOther || t.asksForAnother() {
		p.current = nil
	}
	for _, job := range p.sim.Jobs() {
		if slices.Contains(p.current, job.ID) && !ended(job.Status) {
			ids = append(ids, job.ID)
		}
	}
	return ids
}

// checkEnd asserts that the last turn has ended well, and that no job was paid for that nobody knows.
func (p *player) checkEnd() {
	status := p.job.Get("status")
	p.want(status == completed && !p.job.Tainted, "in the end the job is %v, tainted: %t", status, p.job.Tainted)
	records := p.recorded() // which "terraform query" lists
	for _, job := range p.sim.Jobs() {
		isKnown := p.known[job.ID] || strings.Contains(records, job.ID) || p.life.Journal == off
		p.want(isKnown, "the job %q was lost", job.Prompts)
	}
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

func ended(status string) bool { return status == completed || status == failed || status == archived }

// refusals are the statuses of refused messages.
var refusals = map[string]int{refused: 409, invalid: 422}

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
	before := p.sim.Counts()
	if t.Does == taint {
		p.job.Tainted = !p.job.State.IsNull()
	}
	stored := p.job
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
	p.wire.Break(http.MethodPost, nil)
	for _, kind := range []simulator.Kind{simulator.KindCreate, simulator.KindMessage} {
		switch t.Post {
		case "", unsent:
		case cut:
			p.wire.Break(http.MethodPost, func(w http.ResponseWriter, r *http.Request) {
				p.die()
				faultserver.EOF(w, r)
			})
		default:
			p.sim.Inject(simulator.Fault{Kind: kind, Status: cmp.Or(refusals[t.Post], 500), AfterEffect: t.Post == lost})
		}
	}
	var diags []*tfprotov6.Diagnostic
	switch t.Does {
	case stateRm:
		p.job = fakecli.Instance{}
	case restore:
		p.job = p.stored[max(0, number-2)]
	case importJob:
		job := p.sim.Create(harness.Project, "from elsewhere")
		c := p.connect("import", t, number)
		diags = c.ImportState(p.Context(), harness.Project+"/"+job.ID)
		p.job = c.Instance
	default:
		got.plan, diags = p.run(t, number)
	}
	got.all, got.failed = fakecli.Text(diags), fakecli.Failed(diags)
	for _, d := range diags {
		if found := giveUp.FindStringSubmatch(d.Detail); d.Severity == tfprotov6.DiagnosticSeverityError && found != nil && !p.dead {
			p.stopped = found[1]
		}
	}
	if p.dead || t.Killed && !t.changesState() {
		p.job = stored
	}
	after := p.sim.Counts()
	got.creates, got.messages = after.Create-before.Create, after.Message-before.Message
	for _, r := range p.sim.Requests()[before.Create+before.Message+before.Get:] {
		got.refused = got.refused || r.Kind != simulator.KindGet && r.Status/100 == 4
	}
	return got
}

// run is a plan and an apply, each in a process of its own.
func (p *player) run(t turn, number int) (plan string, diags []*tfprotov6.Diagnostic) {
	planned, config := t.planned()
	job := fakecli.Resource{Address: "now", Planned: planned, Config: config, Forced: t.Does == replace, Gone: t.Does == destroy}
	if t.Ignored {
		job.Ignored = []string{"prompt", "prompt_wo"}
	}
	former := fakecli.Resource{Address: "before", Gone: true}
	r := &fakecli.Run{RefreshOnly: t.Does == refresh, Stopped: func() bool { return p.dead }}
	r.State = fakecli.State{job.Address: {Instance: p.job}}
	resources := []fakecli.Resource{job}
	if t.Moves != "" {
		if p.life.Journal == on {
			former.Alias = 1
		}
		r.State = fakecli.State{former.Address: {Instance: p.job}}
		resources = []fakecli.Resource{former, job}
	}
	start := func(command string) {
		p.ended, r.Plugins = p.processes, nil
		for range former.Alias + 1 {
			r.Plugins = append(r.Plugins, p.connect(command, t, number))
		}
	}
	defer func() {
		left := cmp.Or(r.State[job.Address], r.State[former.Address], &fakecli.Instances{})
		p.job = left.Instance
	}()
	sent, before := p.sent(), p.recorded()
	start("plan")
	r.Plan(p.Context(), resources...)
	plan = fakecli.Text(r.Diags)
	p.want(p.recorded() == before, "a plan wrote into the journal")
	if r.Failed || r.Empty || t.Unapplied {
		return plan, r.Diags
	}
	p.want(p.sent() == sent, "a plan sent something")
	start("apply")
	ctx, kill := context.WithCancel(p.Context())
	defer kill()
	p.kill, p.dies = kill, t.Post == unsent
	if t.Moves == createdFirst {
		slices.Reverse(resources)
	}
	r.Apply(ctx, resources...)
	if p.dies = false; p.dead {
		synctest.Wait()
		p.must(os.RemoveAll(folder))
		_ = os.Rename(kept, folder)
	}
	return plan, r.Diags
}

// sent is how many requests the service has read.
func (p *player) sent() int { return p.sim.Counts().Create + p.sim.Counts().Message }

// recorded is what the journal has.
func (p *player) recorded() string {
	var all strings.Builder
	p.must(filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == store.Suffix {
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

// connect starts a provider process of a run of the CLI.
func (p *player) connect(command string, t turn, number int) *fakecli.CLI {
	p.processes++
	machine, ended := fmt.Sprint("elsewhere ", t.Elsewhere), p.ended
	process := &cli.Process{
		Run: cli.Run(fmt.Sprint(number)), Command: command, Self: cli.ProcessID{Machine: machine, PID: p.processes, Start: "1"},
		Ended:    func(s cli.ProcessID) bool { return s.Machine == machine && s.PID <= ended },
		CLIEnded: func() bool { return false },
	}
	config := attrs{
		"base_url": p.wire.URL, "admin_key": harness.CanaryKey, "project_id": harness.Project,
		"poll": attrs{"min_interval": "1s", "max_interval": "5s"},
	}
	switch {
	case p.life.Journal == off:
		config["journal"] = attrs{"enabled": false}
	case (t.Forgets || t.Late == forgets && command == "apply") && p.stopped != "":
		config["journal"] = attrs{"forget": []any{p.stopped}}
	}
	c := &fakecli.CLI{T: p}
	diags := c.ConnectTo(p.Context(), provider.New("test", provider.Options{Process: process, Dial: p.dial}), config)
	if len(diags) > 0 {
		p.Fatal(fakecli.Text(diags))
	}
	return c
}
