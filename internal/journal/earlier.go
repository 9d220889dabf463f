// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// Earlier is an equal request of another run, which may be still running.
type Earlier struct {
	store.Name
	store.Entry // its JobID is the job that accepted the request, or empty without a response

	Where   string // the file or object that holds the entry
	Unknown bool   // there is no response, and none can arrive
	Listed  bool   // a person has decided to forget it
}

// startedJob is the job that a create has started; empty for a message.
func (e *Earlier) startedJob() string {
	if e.Key.IsCreate() {
		return e.JobID
	}
	return ""
}

func (e *Earlier) pending() bool { return e.JobID == "" && !e.Unknown }

// confirmed tells a claim that is final.
func (e *Earlier) confirmed() bool { return e.Wait == 0 }

// describe returns what an entry says.
func (j *Journal) describe(name store.Name, e store.Entry) *Earlier {
	earlier := &Earlier{Name: name, Entry: e, Where: j.store.Where(name), Listed: slices.Contains(j.Forget, name.ID)}
	if !e.Accepted {
		earlier.JobID = ""
		earlier.Unknown = e.Wait == 0 || time.Since(e.SentAt) > e.MaxWait() || j.process.Ended(e.Sender)
	}
	return earlier
}

// read returns what entries say: first those with a job, then those that may get one. In
// the default folder, one that cannot be read is without a response.
func (j *Journal) read(ctx context.Context, names []store.Name) (found []*Earlier, _ error) {
	for _, name := range names {
		ctx, cancel := context.WithTimeout(ctx, opTimeout)
		e, err := j.store.Read(ctx, name)
		cancel()
		switch {
		case err != nil && j.Named():
			return nil, j.failed("read", err)
		case err != nil:
			e = new(store.Entry)
		case e == nil:
			continue // just removed
		}
		found = append(found, j.describe(name, *e))
	}
	rank := func(e *Earlier) int {
		switch {
		case e.JobID != "":
			return 0
		case e.pending():
			return 1
		}
		return 2
	}
	slices.SortFunc(found, func(a, b *Earlier) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.SentAt.Compare(b.SentAt), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}

// Unseen returns the creates of other runs whose outcome no later run has read in a state, as they
// were sent: each job once, with the run that started it, and what has no response unless
// a person has given it up.
func (j *Journal) Unseen(ctx context.Context) (unseen []*Earlier, _ error) {
	names, err := j.list(ctx, "create", false)
	found := make([][]*Earlier, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16) // a bucket takes some 50 ms for each
	for i, name := range names {
		group.Go(func() (err error) {
			found[i], err = j.read(ctx, []store.Name{name})
			return err
		})
	}
	err = errors.Join(err, group.Wait())
	unseen = slices.Concat(found...)
	slices.SortFunc(unseen, func(a, b *Earlier) int {
		return cmp.Or(a.SentAt.Compare(b.SentAt), cmp.Compare(a.ID, b.ID))
	})
	jobs := map[string]bool{}
	return slices.DeleteFunc(unseen, func(e *Earlier) bool {
		takenOver := e.JobID != "" && jobs[e.JobID]
		jobs[e.JobID] = true
		return takenOver || e.Listed && e.Unknown
	}), err
}
