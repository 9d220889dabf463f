// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package matrix is the fault matrix: each row is a fault, and what must follow.
package matrix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"
	"github.com/hashicorp/terraform-plugin-log/tfsdklogtest"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

type (
	attrs       = fakecli.Attrs
	unknown     = fakecli.Unknown
	diagnostics = []*tfprotov6.Diagnostic
)

// Row is one fault of the matrix; its id begins the name.
type Row struct {
	name string
	// clock runs the row on a fake clock, with pipes in place of sockets.
	clock bool
	Serve faultserver.Options
	// script says how the healthy service's jobs go; nil: 30 ms, 20 s on a
	// fake clock, then completed.
	script func(prompt string, turn int) simulator.Script
	// Provider is laid over the provider's configuration.
	Provider attrs
	Test     func(m *Matrix)
}

// Run runs the row in the working directory dir.
func (r Row) Run(t *testing.T, dir string) {
	r.Serve.InMemory = r.clock
	if r.script == nil {
		duration := 30 * time.Millisecond
		if r.clock {
			duration = 20 * time.Second
		}
		r.script = harness.Always(simulator.Script{Duration: duration})
	}
	sim := harness.NewSimulator(r.script)
	m := &Matrix{T: t, Server: faultserver.New(t, sim, r.Serve), Sim: sim, log: filepath.Join(t.TempDir(), "log"), dir: dir}
	log, err := os.Create(m.log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	m.ctx = tflogtest.RootLogger(tfsdklogtest.RootLogger(t.Context(), log), log)
	m.config = attrs{
		"base_url": m.URL, "admin_key": harness.CanaryKey, "project_id": harness.Project,
		"poll": attrs{"min_interval": "10ms", "max_interval": "100ms"}, "max_new_jobs": 1000,
	}
	if r.clock {
		m.dial = m.Dial
		delete(m.config, "poll")
	}
	if m.Authority != "" {
		m.config["ca_certificates_pem"] = m.Authority
	}
	maps.Copy(m.config, r.Provider)
	m.cli = &fakecli.CLI{T: t}
	if diags := m.connect(); len(diags) > 0 {
		t.Fatal(fakecli.Text(diags))
	}
	m.cli.Forget()
	r.Test(m)
	m.searchForKey(dir)
}

// Matrix is what a row works with: a faulty service, and Terraform's part.
type Matrix struct {
	*testing.T
	*faultserver.Server
	Sim    *simulator.Server
	cli    *fakecli.CLI
	ctx    context.Context
	config attrs
	dial   agentapi.Dial
	log    string       // the name of the file with the log
	shown  bytes.Buffer // all that Terraform would print or store
	text   string       // the diagnostics of the last wantDiags

	dir     string       // the working directory
	process *cli.Process // nil: no journal is kept
	runs    int          // of the CLI so far

	processes int // of the provider so far
}

// start makes a provider process of the run.
func (m *Matrix) start() {
	m.processes++
	m.process = harness.Process(cli.Run(fmt.Sprint("run", m.runs)))
	m.process.Command = "plan"
	m.process.Self.Machine = fmt.Sprint("machine", m.processes) // so that nothing shows that an earlier one has ended
}

// again starts the process of the run that applies.
func (m *Matrix) again() {
	m.Helper()
	planned := m.process
	m.start()
	if m.process.Ended = planned.Ended; planned.Command == "test" {
		m.process.Command = "test"
	} else {
		m.process.Command = "apply"
	}
	if diags := m.connect(); len(diags) > 0 {
		m.Fatal(fakecli.Text(diags))
	}
}

// connect starts a fresh provider with m.config, as the next command does.
func (m *Matrix) connect() []*tfprotov6.Diagnostic {
	m.Helper()
	diags := m.cli.ConnectTo(m.ctx, provider.New("test", provider.Options{Dial: m.dial, Process: m.process}), m.config)
	if !m.cli.State.IsNull() {
		m.cli.Load(m.ctx, m.cli.Instance)
	}
	return m.note(diags)
}

// note checks what was said, and keeps it and what was stored for the search at the end.
func (m *Matrix) note(diags []*tfprotov6.Diagnostic) []*tfprotov6.Diagnostic {
	fmt.Fprintln(&m.shown, fakecli.Text(diags), m.cli.State, m.cli.Planned, string(m.cli.Private), string(m.cli.PlannedPrivate))
	return diags
}

// Run is a whole "terraform apply" of the job. With a journal, another process applies than the one that planned, as with real CLIs.
func (m *Matrix) Run(job attrs) []*tfprotov6.Diagnostic {
	m.Helper()
	if m.process == nil {
		return m.note(m.cli.Run(m.ctx, job))
	}
	diags := m.refresh()
	if !fakecli.Failed(diags) {
		diags = append(diags, m.plan(job)...)
	}
	if !fakecli.Failed(diags) {
		m.again()
		diags = append(diags, m.apply(job)...)
	}
	return diags
}

func (m *Matrix) plan(job attrs) []*tfprotov6.Diagnostic {
	m.Helper()
	return m.note(m.cli.Plan(m.ctx, job))
}

func (m *Matrix) apply(job attrs) []*tfprotov6.Diagnostic {
	m.Helper()
	return m.note(m.cli.Apply(m.ctx, job))
}

func (m *Matrix) refresh() []*tfprotov6.Diagnostic {
	m.Helper()
	return m.note(m.cli.Refresh(m.ctx))
}

// WantPosts asserts the creates and messages that the service has read whole.
func (m *Matrix) WantPosts(creates, messages int) {
	m.Helper()
	if gotCreates, gotMessages := m.posts(); gotCreates != creates || gotMessages != messages {
		m.Errorf("%d creates and %d messages were read whole, want %d and %d", gotCreates, gotMessages, creates, messages)
	}
}

func (m *Matrix) posts() (creates, messages int) {
	return m.Count(faultserver.Create), m.Count(faultserver.Message)
}

// WantState asserts the status in the state, and that nothing is tainted; an
// empty status stands for no state.
func (m *Matrix) WantState(status string) {
	m.Helper()
	if status == "" {
		if !m.cli.State.IsNull() {
			m.Errorf("there is a state: %s", m.cli.State)
		}
		return
	}
	m.wantAttr("status", status)
	if id := m.cli.Get("id"); id == nil || m.cli.Tainted {
		m.Errorf("id %v, tainted %t", id, m.cli.Tainted)
	}
}

// wantAttr asserts an attribute of the state; nil is null.
func (m *Matrix) wantAttr(name string, want any) {
	m.Helper()
	if got := m.cli.Get(name); got != want {
		m.Errorf("%s in state: %.80q, want %.80q", name, got, want)
	}
}

// wantDiags asserts severity and summary of all diagnostics in turn, as
// "SEVERITY: Summary".
func (m *Matrix) wantDiags(diags []*tfprotov6.Diagnostic, want ...string) {
	m.Helper()
	m.text = fakecli.Text(diags)
	var got []string
	for _, d := range diags {
		got = append(got, fmt.Sprintf("%s: %s", d.Severity, d.Summary))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.Errorf("diagnostics (-want +got):\n%s%s", diff, m.text)
	}
}

// OK asserts that there are no diagnostics.
func (m *Matrix) OK(diags []*tfprotov6.Diagnostic) {
	m.Helper()
	m.wantDiags(diags)
}

// logged is what was logged so far.
func (m *Matrix) logged() string {
	m.Helper()
	text, err := os.ReadFile(m.log)
	if err != nil {
		m.Fatal(err)
	}
	return string(text)
}

// searchForKey looks for the key in all that the row has shown, stored and logged.
func (m *Matrix) searchForKey(dir string) {
	m.Helper()
	log := m.logged()
	places := map[string]string{"diagnostics, state or plan": m.shown.String(), "log": log}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		places["file "+filepath.Base(path)] = string(content)
		if filepath.Ext(path) == ".json" && bytes.Contains(content, []byte("Add a")) {
			m.Errorf("a record holds a prompt: %s", content)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		m.Error(err)
	}
	for place, content := range places {
		if at := strings.Index(content, harness.CanaryKey); at >= 0 {
			m.Errorf("the key is in the %s: …%s", place, content[max(0, at-200):at+len(harness.CanaryKey)])
		}
	}
	if m.Dials() > 0 && !strings.Contains(log, "called the agent service") {
		m.Errorf("the log is not complete:\n%s", log)
	}
}
