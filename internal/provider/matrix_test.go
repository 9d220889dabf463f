// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

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
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"
	"github.com/hashicorp/terraform-plugin-log/tfsdklogtest"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// row is one fault of the matrix; its id begins the name.
type row struct {
	name string
	// clock runs the row on a fake clock, with pipes in place of sockets.
	clock bool
	serve faultserver.Options
	// script says how the healthy service's jobs go; nil: 30 ms, 20 s on a
	// fake clock, then completed.
	script func(prompt string, turn int) simulator.Script
	// provider is laid over the provider's configuration.
	provider attrs
	test     func(m *matrix)
}

// TestMatrix is the list of what the provider survives. After every row the
// key is searched for in all that it has written.
func TestMatrix(t *testing.T) {
	t.Setenv("TF_LOG", "TRACE")
	for _, rows := range [][]row{
		createRows(), answerRows(), limitRows(), redirectRows(), connectionRows(), proxyRows(),
		waitRows(), recordRows(), readRows(), messageRows(), pacingRows(), inputRows(), unknownRows(),
		crashRows(), configRows(),
	} {
		for _, r := range rows {
			t.Run(r.name, func(t *testing.T) {
				data := t.TempDir()
				t.Setenv("TF_DATA_DIR", data)
				if r.clock {
					synctest.Test(t, func(t *testing.T) { r.run(t, data) })
				} else {
					r.run(t, data)
				}
			})
		}
	}
}

func (r row) run(t *testing.T, data string) {
	r.serve.InMemory = r.clock
	if r.script == nil {
		duration := 30 * time.Millisecond
		if r.clock {
			duration = 20 * time.Second
		}
		r.script = always(simulator.Script{Duration: duration})
	}
	sim := newSimulator(r.script)
	m := &matrix{T: t, Server: faultserver.New(t, sim, r.serve), sim: sim, log: new(safeBuffer), data: data}
	m.ctx = tflogtest.RootLogger(tfsdklogtest.RootLogger(t.Context(), m.log), m.log)
	m.config = attrs{
		"base_url": m.URL, "admin_key": canaryKey, "project_id": project,
		"poll": attrs{"min_interval": "10ms", "max_interval": "100ms"},
	}
	if r.clock {
		m.dial = m.Dial
		delete(m.config, "poll")
	}
	if m.Authority != "" {
		m.config["ca_certificates_pem"] = m.Authority
	}
	maps.Copy(m.config, r.provider)
	m.core = &core{t: t}
	if diags := m.connect(); len(diags) > 0 {
		t.Fatal(text(diags))
	}
	m.forget()
	r.test(m)
	m.searchForKey(data)
}

// matrix is what a row works with: a faulty service, and Terraform's part.
type matrix struct {
	*testing.T
	*faultserver.Server
	sim    *simulator.Server
	core   *core
	ctx    context.Context
	config attrs
	dial   agentapi.Dial
	log    *safeBuffer
	shown  bytes.Buffer // all that Terraform would print or store

	data    string           // TF_DATA_DIR
	crashes *journal.Journal // nil: none is kept
}

// connect starts a fresh provider with m.config, as the next command does.
func (m *matrix) connect() []*tfprotov6.Diagnostic {
	m.Helper()
	diags := m.core.connectTo(m.ctx, provider.New("test", provider.Options{Dial: m.dial, Journal: m.crashes}), m.config)
	return m.note(diags)
}

// forget empties Terraform's state.
func (m *matrix) forget() {
	m.core.state, m.core.private, m.core.ident, m.core.tainted = m.core.decode(nil), nil, nil, false
}

// note keeps what was said and stored, for the search at the end.
func (m *matrix) note(diags []*tfprotov6.Diagnostic) []*tfprotov6.Diagnostic {
	fmt.Fprintln(&m.shown, text(diags), m.core.state, m.core.planned, string(m.core.private), string(m.core.planPriv))
	return diags
}

func (m *matrix) run(job attrs) []*tfprotov6.Diagnostic {
	m.Helper()
	return m.note(m.core.run(m.ctx, job))
}

func (m *matrix) plan(job attrs) []*tfprotov6.Diagnostic {
	m.Helper()
	return m.note(m.core.plan(m.ctx, job))
}

func (m *matrix) apply(job attrs) []*tfprotov6.Diagnostic {
	m.Helper()
	return m.note(m.core.apply(m.ctx, job))
}

func (m *matrix) refresh() []*tfprotov6.Diagnostic {
	m.Helper()
	return m.note(m.core.refresh(m.ctx))
}

// created runs a job to its end without a fault.
func (m *matrix) created(job attrs) (id string) {
	m.Helper()
	if diags := m.run(job); len(diags) > 0 {
		m.Fatal(text(diags))
	}
	m.wantState("completed")
	return m.core.get("id").(string)
}

// wantPosts asserts the creates and messages that the service has read whole.
func (m *matrix) wantPosts(creates, messages int) {
	m.Helper()
	want := [2]int{creates, messages}
	if diff := cmp.Diff(want, [2]int{m.Count(faultserver.Create), m.Count(faultserver.Message)}); diff != "" {
		m.Errorf("creates and messages read whole (-want +got):\n%s", diff)
	}
}

// wantState asserts the status in the state, and that nothing is tainted.
func (m *matrix) wantState(status string) {
	m.Helper()
	if got := m.core.get("status"); got != status {
		m.Errorf("status in state: %v, want %s", got, status)
	}
	if id, _ := m.core.get("id").(string); id == "" {
		m.Error("the state has no id")
	}
	if m.core.tainted {
		m.Error("the job is tainted")
	}
}

// wantNoState asserts that nothing was stored.
func (m *matrix) wantNoState() {
	m.Helper()
	if !m.core.state.IsNull() {
		m.Errorf("there is a state: %s", m.core.state)
	}
}

// wantDiags asserts severity and summary of all diagnostics, in order, as
// "SEVERITY: Summary".
func (m *matrix) wantDiags(diags []*tfprotov6.Diagnostic, want ...string) {
	m.Helper()
	var got []string
	for _, d := range diags {
		got = append(got, fmt.Sprintf("%s: %s", d.Severity, d.Summary))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.Errorf("diagnostics (-want +got):\n%s%s", diff, text(diags))
	}
}

// wantWords asserts what the diagnostics say.
func (m *matrix) wantWords(diags []*tfprotov6.Diagnostic, words ...string) {
	m.Helper()
	contains(m.T, text(diags), words...)
}

// ok asserts that nothing was said.
func (m *matrix) ok(diags []*tfprotov6.Diagnostic) {
	m.Helper()
	m.wantDiags(diags)
}

// kept asserts the outcome K of a create: the id and "active" in the state, a
// warning, and a next apply that waits on without a POST.
func (m *matrix) kept(diags []*tfprotov6.Diagnostic, words ...string) {
	m.Helper()
	m.wantDiags(diags, "WARNING: Agent job still running")
	m.wantWords(diags, append(words, "Its id is in the state. The next apply waits on and sends nothing.")...)
	m.wantState("active")
	m.wantPosts(1, 0)
}

// resumed runs again after the fault and asserts that the job ends without
// another POST.
func (m *matrix) resumed(job attrs) {
	m.Helper()
	before := [2]int{m.Count(faultserver.Create), m.Count(faultserver.Message)}
	if diags := m.run(job); failed(diags) {
		m.Error(text(diags))
	}
	m.wantState("completed")
	m.wantPosts(before[0], before[1])
}

// searchForKey looks for the key in all that the row has shown, stored and logged.
func (m *matrix) searchForKey(data string) {
	m.Helper()
	log := m.log.String()
	places := map[string]string{"diagnostics, state or plan": m.shown.String(), "log": log}
	err := filepath.WalkDir(data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		places["file "+filepath.Base(path)] = string(content)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		m.Error(err)
	}
	for place, content := range places {
		if at := strings.Index(content, canaryKey); at >= 0 {
			m.Errorf("the key is in the %s: …%s", place, content[max(0, at-200):at+len(canaryKey)])
		}
	}
	if len(m.Requests()) > 0 && !strings.Contains(log, "called the agent service") {
		m.Errorf("the log is not complete:\n%s", log)
	}
}

// safeBuffer is a buffer for several goroutines.
type safeBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
