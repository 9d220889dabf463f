// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race && unix

package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// kind is a kind of step: it tells which ways of cutting make sense there.
type kind int

const (
	call kind = iota
	start
	journalRead
	journalWrite
	request
	response
	stateWrite
)

// way is a way to cut a run. Those that end in "from here on" last until the run ends.
type way string

const (
	uncut         way = ""
	killed        way = "CLI and provider are killed"
	cliKilled     way = "the CLI is killed" // the provider lives on
	stalled       way = "the CLI is killed, and the provider continues a moment later"
	interrupted   way = "Ctrl-C"
	abandoned     way = "Ctrl-C twice"
	loseRequest   way = "the request is lost"
	loseResponse  way = "the response is lost"
	stateLost     way = "the state cannot be stored from here on"
	storeDown     way = "the journal cannot be reached from here on"
	outage        way = "neither the journal nor the state can be reached from here on"
	serviceDown   way = "the service shows no job from here on"
	unconditional way = "the journal ignores the conditions of writes from here on"
	storeHangs    way = "the journal does not respond for half a minute"
	readsHang     way = "the journal does not respond to reads from here on"
	losePut       way = "the response to the write is lost"
	latePut       way = "the write arrives after its client has given up"
)

// waysAt are those that make sense at a step.
func waysAt(k kind) []way {
	return append([]way{interrupted, cliKilled, stalled, killed, abandoned}, map[kind][]way{
		request:      {loseRequest, serviceDown},
		response:     {loseResponse},
		stateWrite:   {stateLost},
		journalRead:  {storeDown, outage, storeHangs, readsHang},
		journalWrite: {storeDown, outage, storeHangs, losePut, latePut},
		start:        {storeDown, serviceDown, unconditional},
	}[k]...)
}

// cut is where and how a run is cut.
type cut struct {
	at  int // the number of the step, from 1; 0: nowhere
	way way
}

// stepTaken is a step of a run.
type stepTaken struct {
	kind kind
	name string
}

// lasts reports whether a step may change what outlives the run.
func (s stepTaken) lasts() bool {
	return strings.Contains(s.name, "journal write") || strings.Contains(s.name, "POST") || strings.Contains(s.name, "state")
}

// step is called at each step of a run. It returns the way in which the run is cut there.
func (r *run) step(k kind, name string) way {
	w := r.world
	w.mu.Lock()
	r.steps = append(r.steps, stepTaken{k, name})
	number := len(r.steps)
	if number == r.cut.at {
		r.cutAt = time.Now()
	}
	w.mu.Unlock()
	if r.number > 0 && w.orphans() {
		time.Sleep(time.Millisecond) // others go on
	}
	if number != r.cut.at {
		return uncut
	}
	switch r.cut.way {
	case killed:
		r.end()
		for _, p := range r.plugins() {
			p.die()
		}
	case cliKilled:
		r.end()
	case stalled:
		r.end()
		time.Sleep(1500 * time.Millisecond) // while the next run is active
	case interrupted:
		r.interrupt()
	case abandoned:
		r.interrupt()
		r.leave()
	case storeDown, outage:
		r.storeDown.Store(true)
	default:
	}
	return r.cut.way
}

// suffers reports whether the run was cut in one of these ways.
func (r *run) suffers(ways ...way) bool {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	return r.cut.at > 0 && len(r.steps) >= r.cut.at && slices.Contains(ways, r.cut.way)
}

// taken returns the steps so far; what the run has left behind may take more.
func (r *run) taken() []stepTaken {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	return r.steps
}

// String lists the steps of a run up to where it is cut.
func (r *run) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %d:\n", r.number+1)
	steps := r.taken()
	if r.cut.at > 0 {
		steps = steps[:min(r.cut.at, len(steps))]
	}
	for i, s := range steps {
		if repeats(steps, i) && i < len(steps)-2 {
			continue
		}
		fmt.Fprintf(&b, "  %2d. %s\n", i+1, s.name)
	}
	if r.cut.at > 0 {
		fmt.Fprintf(&b, "      here: %s\n", r.cut.way)
	}
	return b.String()
}
