// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"os"
	"strconv"
)

// Run names one run of the CLI. All provider processes that one CLI process
// starts share it, provider aliases included.
type Run string

// CurrentRun returns the run that this process belongs to. Without the parent's
// start time, a reused process id would look like the same run.
func CurrentRun() Run {
	parent := os.Getppid()
	return Run(hash(machine(), strconv.Itoa(parent), startTime(parent))[:16])
}

// sender is the process that sent a request.
type sender struct {
	Machine string `json:"machine"` // hash of boot, pid namespace and host
	PID     int    `json:"pid"`
	Start   string `json:"start"`
}

func thisProcess() sender {
	return sender{Machine: machine(), PID: os.Getpid(), Start: startTime(os.Getpid())}
}

// ended returns a function that reports whether a process is known to have ended: it ran
// on this machine, and its id is free or belongs to another process. Without a boot id,
// another machine may have the same name, so nothing is known.
func ended() func(sender) bool {
	boot, here := bootID(), machine() // once: an outage leaves many entries
	return func(s sender) bool {
		return s.Start != "" && boot != "" && s.Machine == here && startTime(s.PID) != s.Start
	}
}

func machine() string {
	host, _ := os.Hostname()
	return hash(host, bootID())[:16]
}
