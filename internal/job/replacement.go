// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import "github.com/agentjobs/terraform-provider-agent/internal/journal"

// replacement is all that a replacement carries from call to call, in the private state. The first
// planning call knows the old object and the second one the new one (T2). Of a tainted object there is
// only the second (T1). Delete reads what they have written (T6). Create gets none of it: it does what
// the record says.
type replacement struct {
	Job       string          `json:"job,omitempty"`  // of the old object; empty if that is tainted
	MayBeSame bool            `json:"same,omitempty"` // it is replaced because of a value that the plan does not know yet
	By        *projectAndName `json:"by,omitempty"`   // the new object; nil if none follows, and empty parts are not known yet
}

// isOfTainted reports whether the old object is tainted.
func (r replacement) isOfTainted() bool { return r.By != nil && r.Job == "" }

// fate decides, for the old object's project and name.
func (r replacement) fate(of projectAndName) journal.Fate {
	isOther := func(next, own string) bool { return next != "" && next != own }
	switch {
	case r.By == nil, isOther(r.By.Project, of.Project), isOther(r.By.Name, of.Name):
		return journal.Leave
	case r.isOfTainted(), r.MayBeSame:
		return journal.Keep
	}
	return journal.Release
}
