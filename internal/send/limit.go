// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package send

import "sync"

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
	Limit [2]Limit // by Kind

	mu       sync.Mutex
	planned  [2]int64
	byJob    map[string]Kind // what the last plan of each job counts
	sent     [2]int64
	reported [2]bool // while planning
}

// Plan counts a request that an apply would send. Only the first one beyond the limit
// is an error, so that a plan of a thousand resources has one. jobID is the job that
// the resource has, or empty. A replacement is planned for its job and then without
// one, and only the second call counts it. A host may plan a resource more than once, as
// "terraform plan -minimal-refresh" does.
//
// Nothing is an error once a request was sent, which refuses those beyond the limit: an apply plans each resource again,
// and if that fails with create_before_destroy, the CLI keeps the old object as a deposed one.
func (l *Limits) Plan(kind Kind, jobID string) *LimitError {
	l.mu.Lock()
	defer l.mu.Unlock()
	if counted, isAgain := l.byJob[jobID]; isAgain {
		l.planned[counted]--
	}
	if l.byJob == nil {
		l.byJob = map[string]Kind{}
	}
	if jobID != "" {
		l.byJob[jobID] = kind
	}
	if jobID == "" || kind == Message {
		l.planned[kind]++
	}
	limit := l.Limit[kind]
	if limit.Setting == "" || l.planned[kind] <= limit.Max || l.reported[kind] || l.sent != [2]int64{} {
		return nil
	}
	l.reported[kind] = true
	return &LimitError{Kind: kind, Limit: limit, Sent: l.sent, Planning: true}
}

// send counts a request that is about to be recorded and sent. Each one beyond
// the limit is an error and must not be sent. One that then fails stays counted:
// if in doubt, too few are sent.
func (l *Limits) send(kind Kind) *LimitError {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.Limit[kind]
	if limit.Setting != "" && l.sent[kind] >= limit.Max {
		return &LimitError{Kind: kind, Limit: limit, Sent: l.sent}
	}
	l.sent[kind]++
	return nil
}

// LimitError is a request beyond a limit.
type LimitError struct {
	Limit
	Kind     Kind
	Sent     [2]int64 // by Kind, before it and by this process
	Planning bool
}

// Error names the limit.
func (e *LimitError) Error() string { return "beyond the limit " + e.Setting }
