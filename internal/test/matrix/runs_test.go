// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// What heads the diagnostics of a journal.
const (
	tookOver           = "WARNING: Agent job of an earlier run taken over"
	takeOverPlanned    = "WARNING: Agent job of an earlier run will be taken over"
	messagePlannedOver = "WARNING: Message of an earlier run will be taken over"
	messageFound       = "WARNING: Message of an earlier run taken over"
	outcomeUnknown     = "ERROR: Outcome of agent job create unknown"
	outcomePlanned     = "WARNING: Outcome of an earlier request unknown"
	journalUnusable    = "WARNING: Journal not usable"
	journalUnwritten   = "WARNING: Journal not written"
	entryNotRemoved    = "WARNING: Journal entry not removed"
	nothingSentBecause = "only the journal can show"
	otherJob           = "WARNING: Agent job of another run not in the state"
)

// nextRun starts the provider process of a new run of the CLI. The one before
// removes nothing, as if it had been killed.
func (m *Matrix) nextRun() {
	m.Helper()
	m.runs++
	m.sameRun()
}

// sameRun starts another provider process of the run.
func (m *Matrix) sameRun() {
	m.Helper()
	m.process = harness.Process(cli.Run(fmt.Sprint("run", m.runs)))
	m.OK(m.connect())
}

// shutDown gives the process the time that a CLI gives it.
func (m *Matrix) shutDown() {
	ctx, cancel := context.WithTimeout(m.ctx, 1500*time.Millisecond)
	defer cancel()
	m.process.Drain(ctx)
}

// wantNoOrphans asserts that no entry remains once the next run has read the state.
func (m *Matrix) wantNoOrphans() {
	m.Helper()
	m.nextRun()
	m.OK(m.refresh())
	m.wantEntries(0)
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

// takesOver runs the job and asserts that the one of the earlier run is announced
// and taken over.
func (m *Matrix) takesOver(job attrs, id string) {
	m.Helper()
	creates, messages := m.posts()
	diags := m.Run(job)
	m.wantDiags(diags, takeOverPlanned, tookOver)
	at := "prompt"
	if m.cli.PromptWO {
		at = "prompt_wo"
	}
	if len(diags) > 0 && !diags[0].Attribute.Equal(tftypes.NewAttributePath().WithAttributeName(at)) {
		m.Errorf("it is said of %s, want %s", diags[0].Attribute, at)
	}
	m.wantWords("An earlier run started job "+id+" with this prompt in project proj_1 at ",
		fmt.Sprintf("An earlier run started job %s in project %v for this prompt", id, m.cli.Get("project_id")), "This resource takes the job over without sending the prompt again.")
	m.WantPosts(creates, messages)
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
	c := *m.cli
	c.Forget()
	return &c
}

// entries are the files of a journal in a folder.
func (m *Matrix) entries() []string {
	m.Helper()
	files, err := filepath.Glob(filepath.Join(m.dir, ".agent-journal", "*", "*.json"))
	if err != nil {
		m.Fatal(err)
	}
	return files
}

// entry is the only file of the journal.
func (m *Matrix) entry() string {
	m.Helper()
	m.wantEntries(1)
	return m.entries()[0]
}

func (m *Matrix) entryID() string {
	m.Helper()
	name := strings.TrimSuffix(filepath.Base(m.entry()), ".json")
	return name[strings.LastIndexByte(name, '-')+1:]
}

// wantEntries asserts how many entries the journal in a folder holds.
func (m *Matrix) wantEntries(n int) {
	m.Helper()
	m.shutDown()
	if got := m.entries(); len(got) != n {
		m.Fatalf("entries: %q, want %d", got, n)
	}
}

// noWait is a job that its create does not wait for.
func noWait() attrs { return fakecli.With(Job1(), attrs{"wait": attrs{"enabled": false}}) }
