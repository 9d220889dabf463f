// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// pointerKey is where a journal elsewhere leaves a pointer beside the state. It is no name's: those end in a hash.
const pointerKey = "kept-elsewhere"

// pointer tells a run without a setting, such as AGENT_JOURNAL_URL, that other runs of the state keep their journal elsewhere.
type pointer struct {
	About string `json:"about"`
	Place string `json:"place"` // its URL
}

// leavePointer writes the pointer, unless it is there. It is for those who forget a setting, so this run does not need it.
func (j *Journal) leavePointer(ctx context.Context) {
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

// pointer reads it once: nil if there is none, or if this run's place was chosen.
func (j *Journal) pointer(ctx context.Context) *Record {
	if !j.IsUsual {
		return nil
	}
	j.index.pointer.Do(func() {
		_, err := j.list(ctx)
		if !j.index.hasPointer.Load() && !errors.Is(err, store.ErrDenied) {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), opTimeout)
		defer cancel()
		var found pointer
		text, _, err := j.store.Get(ctx, pointerKey)
		if err == nil && json.Unmarshal(text, &found) == nil && found.Place != "" {
			j.index.movedTo = &Record{MovedTo: found.Place, Where: j.store.Where(pointerKey)}
		}
	})
	return j.index.movedTo
}

// CheckRead returns an error if nobody has written here so far, as far as this run may know, and it cannot read. Then its apply could not
// write either, and would fail.
func (j *Journal) CheckRead(ctx context.Context) error {
	listed, err := j.list(ctx)
	if len(listed) > 0 || err != nil && !errors.Is(err, store.ErrDenied) {
		return nil // or it is said already
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if err = j.store.CanRead(ctx); !errors.Is(err, store.ErrDenied) {
		return nil
	}
	return j.failed("read", err)
}
