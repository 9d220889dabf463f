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
	planned  map[planned]int64
	byName   map[resource]planned // what the last plan of each resource counts
	sent     [2]int64
	reported map[planned]resource // while planning: the first one beyond the limit, for sure or perhaps
}

// planned is how a plan counts a request: isSure if it knows that the apply sends it.
type planned struct {
	kind   Kind
	isSure bool
}

// resource identifies that of a planned request. An imported job may have no name.
type resource struct{ project, name, job string }

// Plan counts a request that an apply sends, or perhaps sends if the plan is not sure. Only the
// first one beyond the limit is an error, so that a plan of a thousand resources has one; and so is
// the first one that is beyond it if all are sent of which the plan is not sure. A resource may be planned more than once, and its
// last request counts: a replacement is planned twice, and "terraform plan -minimal-refresh" plans
// again after the refresh, without the errors of the first time.
func (l *Limits) Plan(r Request, isSure bool) *LimitError {
	l.mu.Lock()
	defer l.mu.Unlock()
	as, of := planned{r.Kind(), isSure}, resource{project: r.Project, name: r.Name}
	if r.Name == "" {
		of.job = r.JobID
	}
	counted, isAgain := l.byName[of]
	if isAgain {
		l.planned[counted]--
	}
	if l.byName == nil {
		l.byName, l.planned, l.reported = map[resource]planned{}, map[planned]int64{}, map[planned]resource{}
	}
	if of.name != "" || of.job != "" { // else its name is not known yet
		l.byName[of] = as
	}
	l.planned[as]++
	limit, sure, perhaps := l.Limit[as.kind], l.planned[planned{as.kind, true}], l.planned[planned{as.kind, false}]
	as.isSure = isSure && sure > limit.Max
	first, isReported := l.reported[as]
	if limit.Setting == "" || sure+perhaps <= limit.Max || isReported && (!isAgain || first != of) {
		return nil
	}
	l.reported[as] = of
	return &LimitError{Kind: as.kind, Limit: limit, Planning: true, IsSure: as.isSure}
}

// take counts a request that is about to be sent. Each one beyond
// the limit is an error and must not be sent. One that then fails stays counted:
// if in doubt, too few are sent.
func (l *Limits) take(kind Kind) *LimitError {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.beyond(kind); err != nil {
		return err
	}
	l.sent[kind]++
	return nil
}

// check returns an error if the limit is reached.
func (l *Limits) check(kind Kind) *LimitError {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.beyond(kind)
}

func (l *Limits) beyond(kind Kind) *LimitError {
	limit := l.Limit[kind]
	if limit.Setting != "" && l.sent[kind] >= limit.Max {
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
