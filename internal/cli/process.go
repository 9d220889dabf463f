// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package cli is what the provider knows about the process of the CLI that started it, and that the
// plugin protocol does not pass on: which run this is, its command and the state file that a flag
// names, and which processes have ended.
package cli

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// Run names one run of the CLI, in letters and digits. All provider processes that one CLI
// process starts share it, provider aliases included.
type Run string

// Process is a provider process and the CLI that started it.
type Process struct {
	Run      Run
	Command  string // of the CLI, such as "plan" or "test"; empty if its command line cannot be read
	State    string // the file of a local state that a flag names; empty without one
	Self     ProcessID
	Ended    func(ProcessID) bool // reports whether a process is known to have ended
	CLIEnded func() bool          // reports whether the CLI that started this process is known to have ended
	Network  http.RoundTripper    // leads to buckets; nil: the default one

	holds atomic.Int64 // POSTs in progress
}

// This returns this process.
func This() *Process {
	parent := os.Getppid()
	began, _ := startTime(parent)
	self, _ := startTime(os.Getpid())
	arguments := commandLine(parent)
	return &Process{
		Run:      newRun(bootID(), parent, began),
		Command:  command(arguments),
		State:    stateFile(arguments),
		Self:     ProcessID{Machine: machine(), PID: os.Getpid(), Start: self},
		Ended:    ended(bootID(), machine(), startTime),
		CLIEnded: cliEnded(parent),
	}
}

// newRun names the run of a CLI. If the CLI's process cannot be told from one on another machine,
// or from a later one with the same id, the name is random: no other run has it.
func newRun(boot string, parent int, began string) Run {
	if began == "" || boot == "" && !startIsAbsolute {
		return Run(strings.ToLower(rand.Text())[:hashLength])
	}
	return Run(hash(fmt.Sprintln(machine(), parent, began)))
}

// Hold keeps Drain waiting until release is called. More calls of release have no effect.
func (p *Process) Hold() (release func()) {
	p.holds.Add(1)
	var released atomic.Bool
	return func() {
		if !released.Swap(true) {
			p.holds.Add(-1)
		}
	}
}

// Drain waits until the outcome of each POST in progress is recorded, or ctx ends.
func (p *Process) Drain(ctx context.Context) {
	for p.holds.Load() > 0 && sleep.For(ctx, 10*time.Millisecond) == nil {
	}
}

// ProcessID identifies a process, as the sender of a request.
type ProcessID struct {
	Machine string `json:"machine"` // hash of boot, pid namespace and host
	PID     int    `json:"pid"`
	Start   string `json:"start"`
}

// ended returns a function that reports whether a process is known to have ended: it ran
// on this machine, and its id is free or belongs to another process. Without a boot id,
// another machine may have the same name, so nothing is known.
func ended(boot, here string, startTime func(pid int) (string, error)) func(ProcessID) bool {
	return func(id ProcessID) bool {
		if id.Start == "" || boot == "" || id.Machine != here {
			return false
		}
		start, err := startTime(id.PID)
		return err == nil && start != id.Start
	}
}

func machine() string {
	host, _ := os.Hostname()
	return hash(host + "\n" + bootID())
}

const hashLength = 16

func hash(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:hashLength] }
