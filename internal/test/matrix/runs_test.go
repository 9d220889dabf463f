// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"context"
	"fmt"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// What heads the diagnostics of a journal.
const (
	adopted          = "WARNING: Agent job adopted"
	messageFound     = "WARNING: Message of an earlier run counts as sent"
	outcomeUnknown   = "ERROR: Outcome of agent job create unknown"
	anotherPrompt    = "ERROR: Name has an agent job with another prompt"
	journalUnwritten = "WARNING: Journal not written"
)

// nextRun starts the provider process of a new run of the CLI.
func (m *Matrix) nextRun() {
	m.Helper()
	m.runs++
	m.start()
	m.OK(m.connect())
}

// shutDown gives the process the time that a CLI gives it.
func (m *Matrix) shutDown() {
	ctx, cancel := context.WithTimeout(m.ctx, 1500*time.Millisecond)
	defer cancel()
	m.process.Drain(ctx)
}

// adopts runs the job and asserts that the one of an earlier run is adopted, as the plan's id shows.
func (m *Matrix) adopts(job attrs, id string) {
	m.Helper()
	creates, messages := m.posts()
	m.OK(m.plan(job))
	if planned := m.cli.Attribute(m.cli.Planned, "id"); planned != id {
		m.Errorf("the plan shows the id %v, want %s", planned, id)
	}
	m.again()
	m.wantDiags(m.apply(job), adopted)
	m.wantWords(fmt.Sprintf(`The name "a" has job %s in project %v, which was last sent this prompt at `, id, m.cli.Get("project_id")),
		"The resource adopts that job, and nothing was sent.")
	m.WantPosts(creates, messages)
	if m.id() != id || m.cli.Tainted {
		m.Errorf("id %v, tainted %t; want %s, untainted", m.id(), m.cli.Tainted, id)
	}
}

// noWait is a job that its create does not wait for.
func noWait() attrs { return fakecli.With(Job1(), attrs{"wait": attrs{"enabled": false}}) }
