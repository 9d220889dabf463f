// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// Elsewhere is what a run finds in another place: a record of the name, or that other runs of the state keep their journal there.
type Elsewhere struct {
	Record  *Record // nil if nobody has read the journal there
	MovedTo string  // its URL, if Record is nil
	Pointer string  // the object that says so
}

// FindElsewhere returns what another place has of a name that has no record here, or nil: a record of a job that no state is known to
// have, where earlier runs may have kept the journal, or a pointer. A place that cannot be read has none, but without an answer about the
// pointer there is an error. A plan asks once, for all resources, and each request that is sent again.
func (j *Journal) FindElsewhere(ctx context.Context, project, name string, isSending bool) (*Elsewhere, error) {
	if moved, err := j.pointer(ctx, isSending); moved != nil || err != nil {
		return moved, err
	}
	for i, place := range j.Elsewhere {
		value, _ := j.index.places.LoadOrStore(i, over(place.open(j.process), j.process, Options{}))
		other, _ := value.(*Journal)
		r, _, err := other.planned(ctx, key(project, name))
		r = j.settle(r)
		if err == nil && r != nil && !r.IsFree() && !j.IsInState(r.Job) && !j.IsForgotten(r) {
			return &Elsewhere{Record: r}, nil
		}
	}
	return nil, nil
}

// pointerKey is where a journal elsewhere leaves a pointer beside the state. It is no name's: those end in a hash.
const pointerKey = "kept-elsewhere"

// pointer tells a run without a setting, such as AGENT_JOURNAL_URL, that other runs of the state keep their journal elsewhere.
type pointer struct {
	About string `json:"about"`
	Place string `json:"place"` // its URL
}

// writePointer writes the pointer, unless it is there. It is for those who forget a setting, so this run does not need it.
func (j *Journal) writePointer(ctx context.Context) {
	if j.Pointer == nil {
		return
	}
	const about = "Runs of this state keep the journal of agent jobs at this place. Delete this object if they no longer do."
	text, err := json.Marshal(pointer{about, j.Location.URL})
	if err != nil {
		return
	}
	beside := j.Pointer.open(j.process)
	if _, err = beside.Put(ctx, pointerKey, text, ""); errors.Is(err, store.ErrConflict) {
		if there, version, err := beside.Get(ctx, pointerKey); err == nil && string(there) != string(text) {
			_, _ = beside.Put(ctx, pointerKey, text, version)
		}
	}
}

// pointer reads it, once, or again after an error: nil if there is none, if this run may not know, or if its place was chosen.
func (j *Journal) pointer(ctx context.Context, isAgain bool) (*Elsewhere, error) {
	if !j.IsUsual {
		return nil, nil
	}
	_, listErr := j.list(ctx)
	j.index.pointer.Lock()
	defer j.index.pointer.Unlock()
	switch {
	case listErr == nil && !j.index.hasPointer.Load():
		return nil, nil
	case j.index.isPointerRead && (j.index.pointerErr == nil || !isAgain):
		return j.index.movedTo, j.index.pointerErr
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	text, _, err := j.store.Get(ctx, pointerKey)
	j.index.isPointerRead, j.index.pointerErr = true, nil
	if err != nil && !errors.Is(err, store.ErrDenied) {
		j.index.pointerErr = j.failed("read", err)
		return nil, j.index.pointerErr
	}
	var found pointer
	if json.Unmarshal(text, &found) == nil && found.Place != "" {
		j.index.movedTo = &Elsewhere{MovedTo: found.Place, Pointer: j.store.Where(pointerKey)}
	}
	return j.index.movedTo, nil
}
