// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package send

import (
	"slices"
	"sync"
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
	Limit [2]Limit // by Kind

	mu       sync.Mutex
	planned  []planned
	reported map[LimitError]resource // the first resource of each error of a plan
	sent     [2]int64
}

// resource is one that is planned. The plan may not know its name yet, and an imported job may have none.
type resource struct{ project, name, job string }

// planned is the request of a resource, as it was planned last.
type planned struct {
	resource

	kind   Kind
	isSure bool
}

// Plan counts a request that an apply sends, or perhaps sends if the plan is not sure. Only the first
// one beyond the limit is an error, so that a plan of a thousand resources has one. If the requests that
// the plan is sure of exceed the limit, the error says so (IsSure); if only all together do, it is for a
// warning. A resource may be planned more than once, and its last request counts: a replacement is planned
// twice, and "terraform plan -minimal-refresh" plans again after the refresh, without the errors of the
// first time.
func (l *Limits) Plan(r Request, isSure bool) *LimitError {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := planned{resource: resource{project: r.Project, name: r.Name}, kind: r.Kind(), isSure: isSure}
	if r.Name == "" {
		p.job = r.JobID
	}
	at := slices.IndexFunc(l.planned, func(q planned) bool { return p.name+p.job != "" && q.resource == p.resource })
	if at < 0 {
		l.planned, at = append(l.planned, p), len(l.planned)
	}
	l.planned[at] = p
	var sure, all int64 // of the kind
	for _, q := range l.planned {
		if q.kind == p.kind {
			all++
			if q.isSure {
				sure++
			}
		}
	}
	limit := l.Limit[p.kind]
	isBeyond := isSure && sure > limit.Max
	if limit.Setting == "" || !isBeyond && all <= limit.Max {
		return nil
	}
	if l.reported == nil {
		l.reported = map[LimitError]resource{}
	}
	err := LimitError{Kind: p.kind, Limit: limit, Planning: true, IsSure: isBeyond}
	if first, isReported := l.reported[err]; isReported && (first != p.resource || p.name+p.job == "") {
		return nil
	}
	l.reported[err] = p.resource
	return &err
}

// take counts n requests that are about to be sent. It returns an error if the limit is reached: then
// none must be sent. One that fails later stays counted: if in doubt, too few are sent.
func (l *Limits) take(kind Kind, n int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limit := l.Limit[kind]; limit.Setting != "" && l.sent[kind] >= limit.Max {
		return &LimitError{Kind: kind, Limit: limit}
	}
	l.sent[kind] += n
	return nil
}

// LimitError is a request beyond a limit.
type LimitError struct {
	Limit
	Kind     Kind
	Planning bool
	IsSure   bool // while planning: the apply sends more than the limit allows
}

// Error names the limit.
func (e *LimitError) Error() string { return "beyond the limit " + e.Setting }
