// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import "context"

// Object is what a Delete knows of the object that it removes.
type Object struct {
	Project, Name, JobID string
	Arguments            string // as those of Wanted
	PromptHash           string // of the last prompt: see the function; empty if the state knows none
	Holder               string // as the state has it: see Record; empty if it has none, as of a tainted object
}

// Remove records the fate of the name of an object that is removed. It does nothing if the name has
// another job by now, or, unless the fate is Keep, if another object has adopted the job. If the record
// was lost, and a create of the job's request may follow, the record gets the job again. isInUse: another
// object has the job, or may get it.
func (j *Journal) Remove(ctx context.Context, o Object, fate Fate) (isInUse bool, err error) {
	if o.Name == "" || o.JobID == "" { // an imported job has no name yet
		return false, nil
	}
	err = j.edit(ctx, o.Project, o.Name, func(r *Record) (isChanged bool) {
		if fate != Release && o.PromptHash != "" && j.hasLost(r, o) {
			entry := j.newEntry(o.Arguments)
			entry.Prompt = o.PromptHash
			r.setLast(entry, o.JobID)
			r.Holder = o.Holder
		}
		if isInUse = false; r.JobID != o.JobID {
			return false
		}
		isAdopted := !r.IsFree() && o.Holder != "" && r.Holder != "" && r.Holder != o.Holder
		isInUse = isAdopted || fate == Keep
		if isAdopted && fate != Keep {
			return false
		}
		r.Fate, r.FateBy = fate, j.process.Run
		j.log(ctx, string(fate), r)
		return true
	})
	return isInUse, err
}

// hasLost reports whether the record of an object's job was lost.
func (j *Journal) hasLost(r *Record, o Object) bool {
	return r.JobID != o.JobID && r.IsFree() && !j.IsLeftOrKeptByThisRun(r)
}
