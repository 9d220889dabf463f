// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// index is the list of all names with a record. A plan reads it once: if the store does not
// respond, a thousand resources must not wait for it one after another.
type index struct {
	once sync.Once
	keys []string
	err  error
}

// Peek returns the record that an apply would find. It has a claim if the apply would wait. Without
// one, or if the plan may not know, it is empty.
func (j *Journal) Peek(ctx context.Context, project, name string) (*Record, error) {
	// The first caller lists for all of them, so its cancellation must not make the others fail. Nor may
	// an apply that was interrupted plan something else than the plan that it applies.
	ctx, at := context.WithoutCancel(ctx), key(project, name)
	j.index.once.Do(func() { j.index.keys, j.index.err = j.list(ctx) })
	_, isListed := slices.BinarySearch(j.index.keys, at)
	empty, isDenied := &Record{Project: project, Name: name}, errors.Is(j.index.err, store.ErrDenied)
	if !isListed && !isDenied {
		return empty, j.index.err
	}
	r, _, err := j.read(ctx, at)
	switch {
	case isDenied && errors.Is(err, store.ErrDenied): // so nothing shows whether there is one
		return empty, nil
	case r == nil:
		return empty, err
	}
	return j.asOfNow(r), nil
}

// list returns the keys of all records, in order.
func (j *Journal) list(ctx context.Context) (keys []string, _ error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	keys, err := j.store.List(ctx)
	slices.Sort(keys)
	return keys, j.failed("listed", err)
}

// All returns all records, by name. With an error, it returns those that it could read.
func (j *Journal) All(ctx context.Context) ([]*Record, error) {
	keys, err := j.list(ctx)
	if err != nil {
		return nil, err
	}
	found, damaged := make([]*Record, len(keys)), make([]error, len(keys))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16) // a bucket takes some 50 ms for each
	for i, key := range keys {
		group.Go(func() error {
			r, text, err := j.read(ctx, key)
			if r != nil {
				found[i] = j.asOfNow(r)
			}
			if text.Exists() { // a damaged record hides no other, but a store that fails would take long for all of them
				damaged[i], err = err, nil
			}
			return err
		})
	}
	err = errors.Join(append(damaged, group.Wait())...)
	return slices.DeleteFunc(found, func(r *Record) bool { return r == nil }), err
}
