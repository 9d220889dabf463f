// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// What heads the diagnostics of a journal.
const (
	tookOver           = "WARNING: Agent job of an earlier run taken over"
	takeOverPlanned    = "WARNING: Agent job of an earlier run will be taken over"
	messageFound       = "WARNING: Message of an earlier run taken over"
	outcomeUnknown     = "ERROR: Outcome of an earlier create unknown"
	outcomePlanned     = "WARNING: Outcome of an earlier request unknown"
	journalUnusable    = "WARNING: Journal not usable"
	journalUnwritten   = "WARNING: Journal not written"
	nothingSentBecause = "only the journal can show"
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
	m.process = journal.NewProcess(journal.Run(fmt.Sprint("run", m.runs)), func(err error) { m.Error(err) })
	m.OK(m.connect())
}

// folder is where the journal is kept.
func (m *Matrix) folder() string {
	if l, ok := m.config["journal"].(attrs); ok && l["url"] != nil {
		return l["url"].(string)
	}
	return filepath.Join(m.data, "agent")
}

// files lists what the journal in a folder has.
func (m *Matrix) files(pattern string) []string {
	m.Helper()
	files, err := filepath.Glob(filepath.Join(m.folder(), pattern))
	if err != nil {
		m.Fatal(err)
	}
	return files
}

// kill ends the process as others see it: its lock is free. Its entries are
// as edit leaves them. Then it starts the next run.
func (m *Matrix) kill(edits ...func(lines [][]byte) [][]byte) {
	m.Helper()
	for _, path := range m.files("*.json") {
		text, err := os.ReadFile(path)
		for _, edit := range edits {
			text = bytes.Join(edit(bytes.SplitAfter(text, []byte("\n"))), nil)
		}
		if err := errors.Join(err, os.WriteFile(path, text, 0o600)); err != nil {
			m.Fatal(err)
		}
	}
	for _, path := range m.files("*.lock") { // a lock belongs to the file, not to its name
		if err := errors.Join(os.WriteFile(path+".free", nil, 0o600), os.Rename(path+".free", path)); err != nil {
			m.Fatal(err)
		}
	}
	m.nextRun()
}

// unanswered makes entries those of a process that was killed before a response.
func unanswered(lines [][]byte) [][]byte { return lines[:2] } // an empty one and the request

// sentAgo makes answered entries older.
func (m *Matrix) sentAgo(age time.Duration) func(lines [][]byte) [][]byte {
	return func(lines [][]byte) [][]byte {
		for i, line := range lines {
			var e map[string]any
			if json.Unmarshal(line, &e) != nil || e["sent"] == nil {
				continue
			}
			e["sent"] = int64(e["sent"].(float64)) - age.Milliseconds()
			text, err := json.Marshal(e)
			if err != nil {
				m.Fatal(err)
			}
			lines[i] = append(text, '\n')
		}
		return lines
	}
}

// wantNoOrphans ends the process and asserts that no entry remains.
func (m *Matrix) wantNoOrphans() {
	m.Helper()
	m.process.Close(m.ctx)
	m.wantEntries(0)
}

// forgotten is a job of a run whose state is lost.
func (m *Matrix) forgotten(job attrs) (id string) {
	m.Helper()
	m.nextRun()
	m.OK(m.Run(job))
	id = m.id()
	m.cli.Forget()
	return id
}

// started is a job whose run was killed, and its state was lost.
func (m *Matrix) started(job attrs, edits ...func(lines [][]byte) [][]byte) (id string) {
	m.Helper()
	id = m.forgotten(job)
	m.kill(edits...)
	return id
}

// sent is a job to which a run that was killed has sent a message. The state is
// the one from before the message.
func (m *Matrix) sent(edits ...func(lines [][]byte) [][]byte) (id string) {
	m.Helper()
	id = m.created(Job1())
	m.nextRun()
	m.undone(func() { m.wantDiags(m.Run(Job2()), messagePlanned) })
	m.kill(edits...)
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
	posts := m.posts()
	m.wantDiags(m.Run(job), takeOverPlanned, tookOver)
	m.wantWords("An earlier run started job "+id+" with this prompt in project proj_1 at ",
		fmt.Sprintf("An earlier run started job %s in project %v for this prompt", id, m.cli.Get("project_id")), "This resource takes the job over without sending the prompt again.")
	m.wantPosts(posts)
	if m.id() != id || m.cli.Tainted {
		m.Errorf("id %v, tainted %t; want %s, untainted", m.id(), m.cli.Tainted, id)
	}
}

// starts runs the job and asserts that a new one is started, without diagnostics
// but those that were announced.
func (m *Matrix) starts(job attrs, id string, announced ...string) {
	m.Helper()
	posts := m.posts()
	m.wantDiags(m.Run(job), announced...)
	m.WantState("completed")
	posts[0]++
	m.wantPosts(posts)
	if m.id() == id {
		m.Errorf("id %v is that of the earlier run", id)
	}
}

// other is another resource of the same configuration and command.
func (m *Matrix) other() *fakecli.CLI {
	c := *m.cli
	c.Forget()
	return &c
}

// named keeps the journal in a named folder.
func (m *Matrix) named() { m.config["journal"] = attrs{"url": filepath.Join(m.data, "named")} }

// cleanly ends the process, as an undisturbed run does, and starts the next.
func (m *Matrix) cleanly() {
	m.Helper()
	m.process.Close(m.ctx)
	m.nextRun()
}

// wantEntries asserts how many entries the journal in a folder holds.
func (m *Matrix) wantEntries(n int) {
	m.Helper()
	if got := m.files("*.json"); len(got) != n {
		m.Errorf("entries: %q, want %d", got, n)
	}
}
