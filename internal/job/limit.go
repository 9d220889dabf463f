// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"fmt"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// Limit is how many requests of one kind a process may send. The zero Limit
// allows any number.
type Limit struct {
	Setting string // what sets it, for example "max_new_jobs = 50"; empty: nothing does
	Max     int64
}

// Limits counts the requests of one provider configuration in one process, and
// refuses those beyond a limit. A plan and its apply are two processes. It is
// safe for concurrent use once the limits are set.
type Limits struct {
	NewJobs, Messages Limit

	mu       sync.Mutex
	planned  [2]int64
	byJob    map[string]requestKind // what the last plan of each job counts
	sent     [2]int64
	reported [2]bool // while planning
}

// requestKind is a kind of request that has a limit.
type requestKind int

const (
	newJobs requestKind = iota
	messages
)

func (l *Limits) of(kind requestKind) Limit {
	if kind == newJobs {
		return l.NewJobs
	}
	return l.Messages
}

// takeBack takes back what the last plan of a job counted: a host may plan a resource
// more than once, as "terraform plan -minimal-refresh" does.
func (l *Limits) takeBack(jobID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kind, counted := l.byJob[jobID]; counted {
		l.planned[kind]--
		delete(l.byJob, jobID)
	}
}

// plan counts a request that an apply would send. Only the first one beyond the limit
// is an error, so that a plan of a thousand resources has one. jobID is the job that
// the resource has, or empty. A replacement is planned for its job and then without
// one, and only the second call counts it.
func (l *Limits) plan(kind requestKind, jobID string) *limitError {
	l.mu.Lock()
	defer l.mu.Unlock()
	if jobID != "" {
		if l.byJob == nil {
			l.byJob = map[string]requestKind{}
		}
		l.byJob[jobID] = kind
	}
	if jobID == "" || kind == messages {
		l.planned[kind]++
	}
	limit := l.of(kind)
	if limit.Setting == "" || l.planned[kind] <= limit.Max || l.reported[kind] {
		return nil
	}
	l.reported[kind] = true
	return &limitError{kind: kind, setting: limit.Setting, sent: l.sent, planning: true}
}

// send counts a request that is about to be recorded and sent. Each one beyond
// the limit is an error and must not be sent. One that then fails stays counted:
// if in doubt, too few are sent.
func (l *Limits) send(kind requestKind) *limitError {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.of(kind)
	if limit.Setting != "" && l.sent[kind] >= limit.Max {
		return &limitError{kind: kind, setting: limit.Setting, sent: l.sent}
	}
	l.sent[kind]++
	return nil
}

// takeBackPlanned is Limits.takeBack of a provider that may not be configured.
func (d *ProviderData) takeBackPlanned(jobID string) {
	if d != nil {
		d.Limits.takeBack(jobID)
	}
}

// countPlanned is Limits.plan with its error as a diagnostic.
func (d *ProviderData) countPlanned(kind requestKind, jobID string, diags *diag.Diagnostics) {
	if d == nil {
		return
	}
	if err := d.Limits.plan(kind, jobID); err != nil {
		diags.AddError(err.diagnostic())
	}
}

// limitError is a request beyond a limit.
type limitError struct {
	kind     requestKind
	setting  string
	sent     [2]int64 // before it, by this process
	planning bool
}

func (e *limitError) Error() string { return "beyond the limit " + e.setting }

func (e *limitError) diagnostic() (summary, detail string) {
	const intended = "If this number is intended, raise the limit, or apply in parts with -target: each run counts from zero. "
	destroy := ""
	if e.planning {
		destroy = "If this is a destroy, add -refresh=false. Without it, Terraform plans the configuration before it plans the destroy."
	}
	if e.kind == newJobs {
		return "Too many new agent jobs", wording.Paragraphs(e.whatWasSent("job"),
			intended+"Otherwise check for_each and count, and whether the state should already contain the jobs.", destroy)
	}
	return "Too many messages to agent jobs", wording.Paragraphs(e.whatWasSent("message"),
		intended+"Otherwise check what changes the prompts, for example a new version of a module.", destroy)
}

// whatWasSent claims nothing about the whole run: an apply plans each resource
// again while it sends others, and another alias counts separately.
func (e *limitError) whatWasSent(what string) string {
	beyond := fmt.Sprintf("This %s exceeds the limit of one run (%s). Nothing was sent for it", what, e.setting)
	if e.sent == [2]int64{} {
		return beyond + ", and nothing before it with this provider configuration."
	}
	return fmt.Sprintf("%s. Counted before it in this run, with this provider configuration and including requests that failed: %d new jobs and %d messages.", beyond, e.sent[newJobs], e.sent[messages])
}
