// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"time"
)

// Run names one run of the CLI. All provider processes that one CLI process
// starts share it, provider aliases included.
type Run string

// Host is what a process knows of the machine that it runs on.
type Host struct {
	Run      Run
	Self     Sender
	Ended    func(Sender) bool // reports whether a process is known to have ended
	CLIEnded func() bool       // reports whether the CLI that started this process has ended
	ModTime  func(fs.FileInfo) time.Time
	Network  http.RoundTripper // leads to buckets; nil: the default one
}

// ThisHost returns what this process knows.
func ThisHost() Host {
	// Without the parent's start time, a reused process id would look like the same run.
	parent := os.Getppid()
	began := startTime(parent)
	return Host{
		Run:   Run(hash(machine(), strconv.Itoa(parent), began)[:16]),
		Self:  Sender{Machine: machine(), PID: os.Getpid(), Start: startTime(os.Getpid())},
		Ended: ended(),
		// On Windows the id of an ended CLI remains that of the parent, but no longer has a start time.
		CLIEnded: func() bool { return os.Getppid() != parent || startTime(parent) != began },
		ModTime:  fs.FileInfo.ModTime,
	}
}

// Sender is the process that sent a request.
type Sender struct {
	Machine string `json:"machine"` // hash of boot, pid namespace and host
	PID     int    `json:"pid"`
	Start   string `json:"start"`
}

// ended returns a function that reports whether a process is known to have ended: it ran
// on this machine, and its id is free or belongs to another process. Without a boot id,
// another machine may have the same name, so nothing is known.
func ended() func(Sender) bool {
	boot, here := bootID(), machine() // once: an outage leaves many entries
	return func(s Sender) bool {
		return s.Start != "" && boot != "" && s.Machine == here && startTime(s.PID) != s.Start
	}
}

func machine() string {
	host, _ := os.Hostname()
	return hash(host, bootID())[:16]
}
