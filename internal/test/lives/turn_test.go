// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race

package lives

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"pgregory.net/rapid"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

type attrs = fakecli.Attrs

// A life is the turns of one agent_job, whether it has a journal, and whether the service refuses messages to
// completed jobs: with this status.
type life struct {
	Journal string
	Refuses int
	Turns   []turn
}

const (
	on         = "on"
	off        = "off"
	completed  = "completed"
	failed     = "failed"
	archived   = "archived"
	active     = "active"
	unheardOf  = "paused"
	gone       = "gone"
	outlasts   = "outlasts the run"
	apply      = ""
	replace    = "-replace"
	refresh    = "-refresh-only"
	taint      = "taint, and an apply"
	destroy    = "destroy"
	stateRm    = "state rm"
	restore    = "the state before the last turn is restored"
	importJob  = "import"
	refused    = "refused"
	invalid    = "refused because of the prompt"
	lost       = "response lost"
	notArrived = "request lost"
	cut        = "killed after it was sent"
	unsent     = "killed before it is recorded"

	destroyedFirst = "to another one, and the old object is destroyed first"
	createdFirst   = "to another one, and the new object is created first"
)

// What a plan may not know.
const (
	prompt    = "prompt"
	triggers  = "triggers"
	name      = "name"
	project   = "project_id"
	onFailure = "on_failure"
	forgets   = "forget"
)

// A turn is one run of the CLI, and what surrounds it. Empty is the ordinary case.
type turn struct {
	Meanwhile string // what all jobs have become since the last run
	Does      string // empty: apply
	config
	Goes   string // what becomes, during the run, of a job that is active; empty: completed
	Post   string // what happens to the POST of the run
	Killed bool   // before it stores its state

	Ignored   bool   // the prompt, by ignore_changes
	Late      string // what its plan does not know
	Forgets   bool   // the request that the last run stopped for
	Unapplied bool   // the plan
	Elsewhere bool   // on another machine
	Moves     string // the address of the resource, and with a journal its provider alias

	edited int // since the last turn: 2, or 3 if that was killed
}

// config is a configuration of agent_job.
type config struct {
	Prompt    string // empty: A
	Name      string // empty: docs
	WriteOnly bool   // as prompt_wo
	Triggers  bool
	NoWait    bool
	OnFailure string
}

func (c config) prompt() string {
	return "Write " + map[bool]string{true: "A", false: c.Prompt}[c.Prompt == ""]
}

func (c config) attrs() attrs {
	wait := attrs{"enabled": !c.NoWait}
	if c.OnFailure != "" {
		wait["on_failure"] = c.OnFailure
	}
	job := attrs{"wait": wait, "timeouts": attrs{"create": timeout.String(), "update": timeout.String()}}
	job[c.argument()], job["name"] = c.prompt(), cmp.Or(c.Name, "docs")
	if c.Triggers {
		job["triggers"] = attrs{"v": "1"}
	}
	return job
}

// planned is a configuration as its plan knows it, and as its apply does.
func (t turn) planned() (planned, applied attrs) {
	applied = t.attrs()
	late := t.Late
	switch t.Late {
	case "", forgets:
		return applied, applied
	case prompt:
		late = t.argument()
	case project:
		applied[late] = harness.Project
	case onFailure:
		unknown := fakecli.With(applied["wait"].(attrs), attrs{late: fakecli.Unknown{}})
		return fakecli.With(applied, attrs{"wait": unknown}), applied
	}
	return fakecli.With(applied, attrs{late: fakecli.Unknown{}}), applied
}

func (c config) argument() string {
	if c.WriteOnly {
		return "prompt_wo"
	}
	return "prompt"
}

// changesState reports whether the turn runs no plan.
func (t turn) changesState() bool {
	return t.Does == stateRm || t.Does == restore || t.Does == importJob
}

// asksForAnother reports whether the turn asks for a request of its own, whatever was sent before.
func (t turn) asksForAnother() bool {
	return t.Forgets || t.Late == forgets || t.Does == replace || t.Does == destroy || t.Does == importJob
}

// turns generates turns. What comes first in a list is what a life shrinks to, and what
// is ordinary stands there more than once.
var turns = rapid.Custom(func(t *rapid.T) turn {
	one := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	rarely := func(name string) bool { return rapid.IntRange(0, 7).Draw(t, name) == 7 }
	return turn{
		Meanwhile: one("meanwhile", "", "", "", "", "", completed, completed, failed, failed, archived, active, gone, unheardOf),
		Does:      one("does", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", replace, replace, refresh, taint, stateRm, restore, importJob, destroy),
		config: config{
			Prompt: one("prompt", "", "B", "C"), Name: one("name", "", "", "", "", "", "", "guide"), WriteOnly: one("argument", "", "", "prompt_wo") != "", Triggers: rarely("triggers"),
			NoWait: rarely("no wait"), OnFailure: one("on_failure", "", "", "", "warn", "retry"),
		},
		Goes:   one("goes", "", "", failed, outlasts, archived),
		Post:   one("post", "", "", "", "", "", "", refused, invalid, lost, notArrived, cut, unsent),
		Killed: one("killed", "", "", "", "killed") != "",

		Ignored: rarely("ignored"), Forgets: rarely("forgets"), Unapplied: rarely("unapplied"), Elsewhere: rarely("elsewhere"),
		Late:   one("late", "", "", "", "", "", "", "", "", "", "", "", "", prompt, prompt, triggers, name, project, onFailure, forgets),
		Moves:  one("moves", "", "", "", "", "", "", "", "", "", "", "", "", "", destroyedFirst, createdFirst),
		edited: rapid.IntRange(0, 3).Draw(t, "edited"),
	}
})

// lives generates lives. Half of the turns, and most after a killed one, have the configuration of
// the turn before.
var lives = rapid.Custom(func(t *rapid.T) life {
	l := life{
		Journal: rapid.SampledFrom([]string{on, on, on, off}).Draw(t, "journal"),
		Turns:   rapid.SliceOfN(turns, 3, 12).Draw(t, "turns"),
		Refuses: rapid.SampledFrom([]int{0, 0, 0, 0, 409, 400}).Draw(t, "refuses"),
	}
	for i := range l.Turns[1:] {
		now, before := &l.Turns[i+1], l.Turns[i]
		if now.edited < 2 || before.Killed && now.edited < 3 {
			now.config = before.config
		}
	}
	return l
})

// ordinary is what a turn, as a Go literal, need not say.
var ordinary = regexp.MustCompile(`\w+:(""|false|\d|config{})(, )?`)

// String says only what is not ordinary, as a Go literal.
func (t turn) String() string {
	text := strings.ReplaceAll(fmt.Sprintf("%#v", t), "lives.", "")
	for range 2 { // the second time for a config without fields
		text = strings.ReplaceAll(ordinary.ReplaceAllString(text, ""), ", }", "}")
	}
	return text
}
