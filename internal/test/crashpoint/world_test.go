// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package crashpoint

import (
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

const (
	canaryKey    = "mint_canary-51e0c7-do-not-print"
	firstPrompt  = "first canary prompt"
	secondPrompt = "second canary prompt"
	project      = "proj_1"
	// patience ends what hangs, however slow the machine is.
	patience = 2 * time.Minute
)

// world is a root module, and a server that is the service, the state's backend
// and what the plugin reports its steps to.
type world struct {
	t   *testing.T
	dir string
	url string
	env []string
	sim *simulator.Server

	once    sync.Once
	mu      sync.Mutex
	armed   step // where to stop, once; 0: nowhere
	writes  int  // to the journal
	sent    bool // the service has read a POST
	state   []byte
	reached chan struct{}
	resumed chan struct{}
	alive   bool // the CLI was, when the step was resumed
}

func newWorld(t *testing.T, journal store) *world {
	t.Helper()
	w := &world{
		t: t, dir: t.TempDir(), reached: make(chan struct{}), resumed: make(chan struct{}),
		sim: simulator.New(simulator.Options{Key: canaryKey, Script: func(_ string, turn int) simulator.Script {
			if turn > 0 {
				return simulator.Script{Duration: time.Hour}
			}
			return simulator.Script{}
		}}),
	}
	server := httptest.NewServer(w)
	t.Cleanup(func() { w.resume(false); server.Close() })
	w.url = server.URL
	w.env = append([]string{
		envSteps + "=" + w.url, "TF_HTTP_ADDRESS=" + w.url + "/state", "TF_LOG_PROVIDER=TRACE",
		"AGENT_BASE_URL=" + w.url, "AGENT_ADMIN_KEY=" + canaryKey, "AGENT_PROJECT_ID=" + project,
	}, journal.env(w)...)
	return w
}

// configure writes the root module. The data source keeps the provider open
// after the CLI has received the job.
func (w *world) configure(prompt string) {
	w.t.Helper()
	w.writeFile("main.tf", `
terraform {
  required_providers {
    agent = { source = "agentjobs/agent" }
  }
  backend "http" {}
}
resource "agent_job" "test" {
  prompt = "`+prompt+`"
  wait   = { enabled = false }
}
data "agent_job" "after" {
  id         = agent_job.test.id
  depends_on = [agent_job.test]
}
`)
}

func (w *world) writeFile(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/state":
		w.serveState(out, r)
	case strings.HasPrefix(r.URL.Path, "/step/"):
		w.stop(w.reported(r.URL.Path))
	default:
		recorded := httptest.NewRecorder()
		w.sim.ServeHTTP(recorded, r)
		w.stop(w.served(r.Method))
		maps.Copy(out.Header(), recorded.Header())
		out.WriteHeader(recorded.Code)
		_, _ = out.Write(recorded.Body.Bytes())
	}
}

func (w *world) reported(path string) step {
	w.mu.Lock()
	defer w.mu.Unlock()
	if path == stepWrite {
		w.writes++
	}
	switch {
	case path == stepServed && w.sent:
		return processEnd
	case path == stepWrite && w.writes == 1:
		return journalBegun
	case path == stepWritten && w.writes == 1:
		return journalDone
	case path == stepWrite && w.writes == 2:
		return responseRead
	case path == stepWritten && w.writes == 2:
		return idRecorded
	}
	return nowhere
}

func (w *world) served(method string) step {
	w.mu.Lock()
	defer w.mu.Unlock()
	if method == http.MethodPost {
		w.sent = true
		return requestWritten
	}
	if w.sent {
		return stateHandedOver // the data source is read
	}
	return nowhere
}

func (w *world) serveState(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	state, sent := w.state, w.sent
	w.mu.Unlock()
	switch r.Method {
	case http.MethodGet:
		if len(state) == 0 {
			out.WriteHeader(http.StatusNotFound)
		}
		_, _ = out.Write(state)
		return
	case http.MethodPost:
		var err error
		if state, err = io.ReadAll(r.Body); err != nil {
			return
		}
		if sent && w.stop(stateWrite) && !w.alive { // a CLI that has ended in its write has stored nothing
			return
		}
	case http.MethodDelete:
		state = nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = state
}

func (w *world) arm(at step, state string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed, w.state = at, []byte(state)
}

// stop holds up the one who comes to the armed step first.
func (w *world) stop(at step) (stopped bool) {
	w.mu.Lock()
	if stopped = at != nowhere && at == w.armed; stopped {
		w.armed = nowhere
	}
	w.mu.Unlock()
	if stopped {
		close(w.reached)
		<-w.resumed
	}
	return stopped
}

// resume lets the one who was stopped continue.
func (w *world) resume(alive bool) {
	w.once.Do(func() {
		w.alive = alive
		close(w.resumed)
	})
}

// saved is the state as the backend holds it.
func (w *world) saved() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.state)
}

// files lists everything below the root module.
func (w *world) files() (names []string) {
	w.t.Helper()
	if err := filepath.WalkDir(w.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			names = append(names, path)
		}
		return err
	}); err != nil {
		w.t.Error(err)
	}
	return names
}
