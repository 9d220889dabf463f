// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// What the provider in steps reports.
const (
	stepWrite   = "/step/write"   // it is about to write to the journal
	stepWritten = "/step/written" // it has written
	stepServed  = "/step/served"  // the CLI has closed it
)

// The data source keeps the provider open after the CLI has received the job.
func stepConfiguration(prompt string) string {
	return use("test", prompt, "wait {\n    enabled = false\n  }") + `
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

func newSteppedDir(t *testing.T, s store, armed step) *steppedDir {
	t.Helper()
	w := &steppedDir{armed: armed, reached: make(chan struct{}), resumed: make(chan struct{})}
	sim := simulator.New(simulator.Options{Key: canaryKey, Script: func(_ string, turn int) simulator.Script {
		return simulator.Script{Duration: time.Duration(turn) * time.Hour}
	}})
	w.workingDir = newWorkingDirAt(t, sim, w, "")
	w.storeRemotely()
	t.Cleanup(func() { w.resume(false) }) // before the servers wait for it
	w.remote.onWrite = func() bool {      // a CLI that has ended in its write has stored nothing
		return !w.stop(w.passing(http.MethodPut, "")) || w.alive
	}
	w.keepJournal(s)
	w.config = stepConfig
	w.env = []string{"CHAOS_STEPS=" + w.url, "TF_LOG_PROVIDER=TRACE", "TF_LOG_PATH=" + w.dir + "/log"}
	w.write(stepConfiguration(canaryPrompt))
	return w
}

func (w *steppedDir) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/step/") {
		w.sim.ServeHTTP(out, r) // so short a response leaves when this returns
	}
	w.stop(w.passing(r.Method, r.URL.Path))
}

// passing is the step at which a request comes.
func (w *steppedDir) passing(method, path string) step {
	w.mu.Lock()
	defer w.mu.Unlock()
	if path == stepWrite {
		w.writes++
	}
	switch {
	case path == stepWrite && w.writes == 1:
		return journalBegun
	case path == stepWritten && w.writes == 1:
		return journalDone
	case path == stepWrite && w.writes == 2:
		return responseRead
	case path == stepWritten && w.writes == 2:
		return idRecorded
	case path == stepServed && w.posted:
		return processEnd
	case strings.HasPrefix(path, "/step/"):
		return nowhere
	case method == http.MethodPost:
		w.posted = true
		return requestWritten
	case !w.posted:
		return nowhere
	case method == http.MethodPut:
		return stateWrite
	}
	return stateHandedOver // the data source is read
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
