// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race && unix

package explore

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// world is what outlives a run.
type world struct {
	*testing.T

	scenario scenario
	sim      *simulator.Server
	wire     *faultserver.Server
	bucket   *fakes3.Server

	mu        sync.Mutex
	processes []*process
	runs      []*run
	state     fakecli.State   // as it was stored
	everSeen  map[string]bool // ids of jobs that were in a stored state
	backup    fakecli.State   // as it was after the commands before the cuts
	requests  []string        // the last ones by then
	tainted   bool            // a stored object was
	shown     string          // what a user has read
	occurred  map[string]bool
	wrong     []string // what a run has done, and must not
}

func idOf(i fakecli.Instance) string {
	id, _ := i.Get("id").(string)
	return id
}

func newWorld(t *testing.T, s scenario) *world {
	script := func(_ string, turn int) simulator.Script {
		script := s.script
		if turn > 0 && s.messaged != nil {
			script = *s.messaged
		}
		script.Duration = cmp.Or(script.Duration, time.Second)
		return script
	}
	w := &world{
		T: t, scenario: s, sim: harness.NewSimulator(script), bucket: &fakes3.Server{Objects: map[string][]byte{}},
		state: fakecli.State{}, everSeen: map[string]bool{}, occurred: map[string]bool{},
	}
	w.wire = faultserver.New(t, http.HandlerFunc(w.serve))
	return w
}

// Errorf keeps what a run must not do, and what fakecli asserts: the report of the schedule has it.
func (w *world) Errorf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if wrong := fmt.Sprintf(format, args...); !slices.Contains(w.wrong, wrong) {
		w.wrong = append(w.wrong, wrong)
	}
}

const requestTimeout = 5 * time.Second

// serve answers a request, which names its process in User-Agent. A request that has
// arrived is answered even if its process has ended.
func (w *world) serve(resp http.ResponseWriter, req *http.Request) {
	p := w.sender(req)
	name := req.Method
	if req.Method == http.MethodPost {
		name = map[bool]string{true: "POST message", false: "POST create"}[strings.HasSuffix(req.URL.Path, "/message")]
	}
	if p.run.step(request, name+" arrives") == loseRequest {
		p.hangUp()
		return
	}
	if req.Method == http.MethodPost {
		time.Sleep(w.scenario.late)
	}
	if req.Method == http.MethodGet && p.run.suffers(serviceDown) {
		http.Error(resp, "", http.StatusServiceUnavailable)
		return
	}
	w.sim.ServeHTTP(resp, req)
	w.mu.Lock()
	if req.Method == http.MethodPost {
		p.run.posts++
	}
	w.mu.Unlock()
	if p.run.step(response, "response to "+name) == loseResponse {
		p.hangUp()
	}
}

func (w *world) sender(req *http.Request) *process {
	var pid int
	if _, err := fmt.Sscanf(req.UserAgent(), "terraform-provider-agent/%d", &pid); err != nil {
		w.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.processes[pid]
}

// records are those in the journal, by name.
func (w *world) records() (records []journal.Record) {
	w.bucket.Lock()
	defer w.bucket.Unlock()
	for _, key := range slices.Sorted(maps.Keys(w.bucket.Objects)) {
		var r journal.Record
		if json.Unmarshal(w.bucket.Objects[key], &r) == nil && r.Format > 0 { // not the proof of conditions
			records = append(records, r)
		}
	}
	return records
}

// isUnknown reports whether nobody knows what became of the last request.
func isUnknown(r journal.Record) bool {
	return r.Claim != nil || r.Last != nil && r.Last.Unknown && !r.IsFreed()
}

// unknown are the ids of creates without a response.
func (w *world) unknown() (ids []string) {
	for _, r := range w.records() {
		switch {
		case r.Claim != nil && !r.Claim.IsMessage():
			ids = append(ids, r.Claim.ID)
		case r.IsUnknownCreate():
			ids = append(ids, r.Last.ID)
		}
	}
	return ids
}

// fingerprint is equal for worlds that the next run cannot tell apart.
func (w *world) fingerprint() string {
	var b strings.Builder
	fmt.Fprintf(&b, "only interrupted %t, or the CLI killed %t, or abandoned %t\n", w.cutOnlyBy(interrupted),
		w.cutOnlyBy(interrupted, cliKilled, stalled), w.cutOnlyBy(interrupted, cliKilled, stalled, abandoned))
	jobs := map[string]int{"": -1}
	for i, job := range w.sim.Jobs() {
		jobs[job.ID] = i
		fmt.Fprintf(&b, "job %d %s %s %q stored %t shown %t\n", i, job.Project, job.Status, job.Prompts,
			w.everSeen[job.ID], strings.Contains(w.shown, job.ID))
	}
	records := w.records()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range records {
		fmt.Fprintf(&b, "record %s job %d fate %s", r.Name, jobs[r.JobID], r.Fate)
		fmt.Fprintln(&b, w.describe("last", r.Last, jobs), w.describe("claim", r.Claim, jobs))
	}
	for _, address := range slices.Sorted(maps.Keys(w.state)) {
		for _, i := range w.state[address].All() {
			fmt.Fprintf(&b, "%s job %d %v %v %v %v tainted %t private %s\n", address, jobs[idOf(i)], i.Get("name"), i.Get("prompt"),
				i.Get("status"), i.Get("triggers"), i.Tainted, normal(i, records))
		}
	}
	return b.String()
}

// describe is a request in a record. w.mu must be locked.
func (w *world) describe(kind string, r *journal.Entry, jobs map[string]int) string {
	if r == nil {
		return ""
	}
	prompt := slices.IndexFunc(prompts, func(p string) bool { return journal.Hash(r.ID, p) == r.Prompt })
	return fmt.Sprintf(", %s message %t to %d triggers %.3s prompt %d unknown %t unsent %t alive %t age %d given up %t", kind, r.IsMessage(), jobs[r.Recipient],
		r.Arguments, prompt, r.Unknown, r.Unsent, w.alive(r.Sender), coarse(time.Since(r.SentAt)), strings.Contains(w.shown, r.ID))
}

// coarse is an age as far as it matters: what is a few seconds old has the same future.
func coarse(age time.Duration) int { return int(age / (15 * time.Second)) }

// varying is what differs in each world.
var varying = regexp.MustCompile(`job_\w+|\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)`)

// normal is the private state without what differs in each world: instead of its holder, whether that was the last to adopt the job.
func normal(i fakecli.Instance, records []journal.Record) string {
	var values map[string][]byte
	_ = json.Unmarshal(i.Private, &values)
	var holder string
	_ = json.Unmarshal(values["holder"], &holder)
	isLast := slices.ContainsFunc(records, func(r journal.Record) bool { return r.Name == i.Get("name") && r.Holder == holder })
	delete(values, "holder")
	return varying.ReplaceAllString(fmt.Sprintf("%s, last adopted %t", values, isLast), "")
}

// alive reports whether a process runs. w.mu must be locked.
func (w *world) alive(s cli.ProcessID) bool {
	return s.PID < len(w.processes) && !w.processes[s.PID].dead.Load()
}

// orphans reports whether processes of earlier runs are still alive.
func (w *world) orphans() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.processes, func(p *process) bool { return !p.dead.Load() })
}

// storeState is the CLI writing a state.
func (w *world) storeState(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range r.State {
		for _, i := range o.All() {
			w.everSeen[idOf(i)] = true
			w.tainted = w.tainted || i.Tainted
		}
	}
	w.state = maps.Clone(r.State)
}

// show is the CLI printing diagnostics.
func (w *world) show(diags []*tfprotov6.Diagnostic) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range diags {
		w.occurred[d.Summary] = true
	}
	w.shown += fakecli.Text(diags)
}

// settings is the configuration of the provider.
func (p *process) settings() fakecli.Attrs {
	w := p.run.world
	forget := []any{}
	for _, id := range p.run.forget {
		forget = append(forget, id)
	}
	if p.run.command.forgets {
		for _, id := range w.requests {
			forget = append(forget, id)
		}
	}
	return fakecli.Attrs{
		"request_timeout": requestTimeout.String(), "base_url": w.wire.URL, "admin_key": harness.CanaryKey, "project_id": harness.Project,
		"journal": fakecli.Attrs{"url": "s3://bucket/prefix?region=us-east-1&endpoint=http://127.0.0.1:2&state=state", "forget": forget},
	}
}
