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
	ByKind [2]Limit

	mu      sync.Mutex
	planned []planned
	sent    [2]int64
}

// planned is the request of a resource, as it was planned last.
type planned struct {
	project, name, job string // the resource: a plan may not know its name yet, and an imported job may have none
	kind               Kind
	isSure             bool
	reports            *LimitError // what the plan of this resource reports for all of the kind; nil: nothing
}

// isOf reports whether both are requests of one resource.
func (p planned) isOf(q planned) bool {
	return p.name+p.job != "" && p.project == q.project && p.name == q.name && p.job == q.job
}

// Plan counts a request that an apply sends, or may send if the plan is not sure. It replaces the
// resource's earlier count, because a replacement is planned twice, and "terraform plan -minimal-refresh"
// plans again after the refresh, without the errors of the first time. The error has IsSure if the sure
// requests alone exceed the limit; otherwise it is for a warning. Each error is returned once, so that a
// thousand resources show one; the resource that has it gets it again when it is planned again.
func (l *Limits) Plan(r Request, isSure bool) *LimitError {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := planned{project: r.Project, name: r.Name, kind: r.Kind(), isSure: isSure}
	if r.Name == "" {
		p.job = r.Recipient
	}
	l.planned = append(slices.DeleteFunc(l.planned, p.isOf), p)
	limit := l.ByKind[p.kind]
	var sure, all int64 // of the kind
	for _, q := range l.planned {
		if q.kind == p.kind {
			all++
			if q.isSure {
				sure++
			}
		}
	}
	report := LimitError{Kind: p.kind, Limit: limit, Planning: true, IsSure: isSure && sure > limit.Max}
	isBeyond := report.IsSure || all > limit.Max
	isReported := func(q planned) bool { return q.reports != nil && *q.reports == report }
	if limit.Setting == "" || !isBeyond || slices.ContainsFunc(l.planned, isReported) {
		return nil
	}
	l.planned[len(l.planned)-1].reports = &report
	return &report
}

// check returns an error if the limit is reached: then nothing must be sent.
func (l *Limits) check(kind Kind) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reached(kind)
}

// take counts a request that is about to be sent, or fails like check. One that fails later stays
// counted: if in doubt, too few are sent.
func (l *Limits) take(kind Kind) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.reached(kind)
	if err == nil {
		l.sent[kind]++
	}
	return err
}

// reached is check with the lock held.
func (l *Limits) reached(kind Kind) error {
	if limit := l.ByKind[kind]; limit.Setting != "" && l.sent[kind] >= limit.Max {
		return &LimitError{Kind: kind, Limit: limit}
	}
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
