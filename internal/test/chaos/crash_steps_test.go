// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// The data source keeps the provider open after the CLI has received the job.
func stepConfiguration(prompt string) string {
	return use("test", prompt, "wait = { enabled = false }") + `
data "agent_job" "after" {
  id         = agent_job.test.id
  depends_on = [agent_job.test]
}
`
}

// steppedDir is a working directory whose service and backend stop a run at a
// step. The plugin reports its own steps to the service.
type steppedDir struct {
	*workingDir

	once    sync.Once
	mu      sync.Mutex
	armed   step // where to stop, once
	writes  int  // to the journal
	posted  bool // the service has read a POST
	reached chan struct{}
	resumed chan struct{}
	alive   bool // the CLI was, when the step was resumed
}

func newSteppedDir(t *testing.T, s store) *steppedDir {
	t.Helper()
	w := &steppedDir{reached: make(chan struct{}), resumed: make(chan struct{})}
	sim := simulator.New(simulator.Options{Key: canaryKey, Script: func(_ string, turn int) simulator.Script {
		if turn > 0 {
			return simulator.Script{Duration: time.Hour}
		}
		return simulator.Script{}
	}})
	w.workingDir = newWorkingDirAt(t, sim, w, "")
	t.Cleanup(func() { w.resume(false) }) // before the servers wait for it
	w.storeRemotely()
	t.Cleanup(func() { w.resume(false) })
	w.remote.onWrite = func() bool { // a CLI that has ended in its write has stored nothing
		return !w.hasPosted() || !w.stop(stateWrite) || w.alive
	}
	w.keepJournal(s)
	w.config = stepConfig
	w.env = []string{"CHAOS_STEPS=" + w.url, "TF_LOG_PROVIDER=TRACE", "TF_LOG_PATH=" + w.dir + "/log"}
	w.write(stepConfiguration(canaryPrompt))
	return w
}

func (w *steppedDir) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	switch {
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

func (w *steppedDir) reported(path string) step {
	w.mu.Lock()
	defer w.mu.Unlock()
	if path == stepWrite {
		w.writes++
	}
	switch {
	case path == stepServed && w.posted:
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

func (w *steppedDir) served(method string) step {
	w.mu.Lock()
	defer w.mu.Unlock()
	if method == http.MethodPost {
		w.posted = true
		return requestWritten
	}
	if w.posted {
		return stateHandedOver // the data source is read
	}
	return nowhere
}

func (w *steppedDir) hasPosted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.posted
}

func (w *steppedDir) arm(at step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = at
}

// stop holds up the one who comes to the armed step first.
func (w *steppedDir) stop(at step) (stopped bool) {
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
func (w *steppedDir) resume(alive bool) {
	w.once.Do(func() {
		w.alive = alive
		close(w.resumed)
	})
}
