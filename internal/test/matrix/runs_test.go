// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// What heads the diagnostics of a journal.
const (
	adopted          = "WARNING: Agent job of an earlier run adopted"
	adoptPlanned     = "WARNING: Agent job of an earlier run will be adopted"
	promptRecorded   = "WARNING: Prompt stored without sending it"
	messageFound     = "WARNING: Message of an earlier run counts as sent"
	outcomeUnknown   = "ERROR: Outcome of agent job create unknown"
	unknownPlanned   = "WARNING: Outcome of agent job create unknown"
	requestPlanned   = "WARNING: Outcome of an earlier request unknown" // that of a message, or one that is not over
	otherPrompt      = "ERROR: Name has an agent job with another prompt"
	otherPlanned     = "WARNING: Name has an agent job with another prompt"
	nameTaken        = "ERROR: Name has another agent job"
	nameTakenPlanned = "WARNING: Name has another agent job"
	otherJob         = "WARNING: Agent job of another run not in the state"
	previousJobs     = "WARNING: Earlier agent jobs of a name not in the state"
	notAdopted       = "WARNING: Agent job will not be adopted"
	nameNotReleased  = "WARNING: Name of agent job not released"
	duplicateName    = "ERROR: Duplicate agent job name"
	jobFailed        = "ERROR: Agent job failed"
	stillFailed      = "WARNING: Agent job has failed"
	journalUnusable  = "WARNING: Journal not usable"
	journalMayBe     = "WARNING: Journal may not be usable"
	journalUnwritten = "WARNING: Journal not written"
)

// nextRun starts the provider process of a new run of the CLI.
func (m *Matrix) nextRun() {
	m.Helper()
	m.runs++
	m.sameRun()
}

// sameRun starts another provider process of the run.
func (m *Matrix) sameRun() {
	m.Helper()
	m.start()
	m.OK(m.connect())
}

// shutDown gives the process the time that a CLI gives it.
func (m *Matrix) shutDown() {
	ctx, cancel := context.WithTimeout(m.ctx, 1500*time.Millisecond)
	defer cancel()
	m.process.Drain(ctx)
}

// started is a job of a run that was killed, and its state was lost.
func (m *Matrix) started(job attrs) (id string) {
	m.Helper()
	m.nextRun()
	m.OK(m.Run(job))
	id = m.id()
	m.cli.Forget()
	m.nextRun()
	return id
}

// undone runs a step whose state is lost: the one from before comes back.
func (m *Matrix) undone(step func()) {
	m.Helper()
	before := *m.cli
	step()
	*m.cli = before
}

// adopts runs the job and asserts that the one of the earlier run is announced and adopted.
func (m *Matrix) adopts(job attrs, id string) {
	m.Helper()
	creates, messages := m.posts()
	diags := m.Run(job)
	m.wantDiags(diags, adoptPlanned, adopted)
	if len(diags) > 0 && !diags[0].Attribute.Equal(tftypes.NewAttributePath().WithAttributeName("name")) {
		m.Errorf("it is said of %s, want the name", diags[0].Attribute)
	}
	m.wantWords(`The name "a" has job `+id+" in project proj_1, which was last sent this prompt at ", "Apply adopts the job without sending anything.",
		fmt.Sprintf(`An earlier run started job %s in project %v under the name "a", and last sent it this prompt at`, id, m.cli.Get("project_id")),
		"This resource adopts the job without sending anything.")
	m.WantPosts(creates, messages)
	m.wantJob(id)
}

// wantJob asserts which job the state has, not tainted.
func (m *Matrix) wantJob(id string) {
	m.Helper()
	if m.id() != id || m.cli.Tainted {
		m.Errorf("id %v, tainted %t; want %s, untainted", m.id(), m.cli.Tainted, id)
	}
}

// starts runs the job and asserts that a new one is started, without diagnostics
// but those that were announced.
func (m *Matrix) starts(job attrs, announced ...string) {
	m.Helper()
	creates, messages := m.posts()
	m.wantDiags(m.Run(job), announced...)
	m.wantEnd("completed", creates+1, messages)
}

// other is another resource of the same configuration and command.
func (m *Matrix) other() *fakecli.CLI {
	c := m.same()
	c.Name = "other"
	return c
}

// same is the resource itself, in a run that does not know its state.
func (m *Matrix) same() *fakecli.CLI {
	c := *m.cli
	c.Forget()
	return &c
}

// records are those of a journal in a folder, by name.
func (m *Matrix) records() map[string]*journal.Record {
	m.Helper()
	m.shutDown()
	files, err := filepath.Glob(filepath.Join(m.dir, ".agent-journal", "*", "*", "*.json"))
	if err != nil {
		m.Fatal(err)
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }) // by number
	found := map[string]*journal.Record{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			m.Fatal(err)
		}
		r := &journal.Record{Where: filepath.Dir(file)}
		if err := json.Unmarshal(text, r); err != nil {
			m.Fatal(err)
		}
		found[r.Name] = r
	}
	return found
}

// record is that of the resource's name.
func (m *Matrix) record() *journal.Record {
	m.Helper()
	r := m.records()["a"]
	if r == nil {
		m.Fatal("the name has no record")
	}
	return r
}

// wantRecord asserts which job the record of the name has, and what is known of its last request.
func (m *Matrix) wantRecord(jobID string, isUnknown, isReleased bool) {
	m.Helper()
	r := m.record()
	if r.Claim != nil || r.Last == nil || r.Job != jobID || r.Last.Unknown != isUnknown || r.Released != isReleased {
		m.Errorf("record: %+v, last request %+v; want job %q, unknown %t, released %t", r, r.Last, jobID, isUnknown, isReleased)
	}
}

// noWait is a job that its create does not wait for.
func noWait() attrs { return fakecli.With(Job1(), attrs{"wait": attrs{"enabled": false}}) }

// triggered is a job with a trigger.
func triggered(job attrs, value string) attrs {
	return fakecli.With(job, attrs{"triggers": attrs{"a": value}})
}

// inFlight applies a job whose create gets no response before release is called, and starts the next run.
func (m *Matrix) inFlight(job attrs) (release func()) {
	m.Helper()
	responds, ended := make(chan struct{}), sync.WaitGroup{}
	m.Always(faultserver.Create, func(x *faultserver.Exchange) { <-responds; faultserver.Healthy(x) })
	earlier := *m.cli
	earlier.Load(m.ctx, earlier.Instance)
	earlier.Plan(m.ctx, job)
	ended.Go(func() { earlier.Apply(m.ctx, job) })
	time.Sleep(time.Second)
	m.Always(faultserver.Create, nil)
	m.nextRun()
	return func() { close(responds); ended.Wait() }
}
