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

// Earlier is a request of another run, which may be still running.
type Earlier struct {
	store.Name
	store.Entry // JobID is empty unless the request was accepted

	Where   string // the file or object that holds the entry
	GivenUp bool   // a person has decided to forget it
	Unsent  bool   // its sender has ended, and had not sent it
}

// startedJob is the job that a create has started; empty for a message.
func (e *Earlier) startedJob() string {
	if e.Key.IsCreate() {
		return e.JobID
	}
	return ""
}

// describe returns what an entry says. A pending request becomes unknown when no response can arrive.
func (j *Journal) describe(ctx context.Context, name store.Name, e store.Entry) (*Earlier, error) {
	if e.Status != store.Accepted {
		e.JobID = ""
	}
	found := &Earlier{Name: name, Entry: e, Where: j.store.Where(name), GivenUp: slices.Contains(j.Forget, name.ID)}
	if e.Status != store.Pending {
		return found, nil
	}
	if j.process.Ended(e.Sender) {
		found.Status = store.Unknown
		if !e.Marked { // an earlier version made no marks
			return found, nil
		}
		isSent, err := j.store.IsSent(ctx, name)
		found.Unsent = !isSent
		return found, err
	}
	if time.Now().After(e.Deadline) {
		found.Status = store.Unknown
	}
	return found, nil
}

// removeUnsent removes what was not sent, and returns the others.
func (j *Journal) removeUnsent(ctx context.Context, found []*Earlier) (sent []*Earlier, _ error) {
	for _, e := range found {
		if e.Unsent {
			ctx, cancel := context.WithTimeout(ctx, opTimeout)
			isSent, err := j.store.RemoveUnsent(ctx, e.Name)
			cancel()
			if err != nil {
				return nil, j.failed("cleaned up", err)
			}
			if e.Unsent = !isSent; e.Unsent {
				j.log(ctx, "removed: it was not sent", e.Name, "")
				continue
			}
		}
		sent = append(sent, e)
	}
	return sent, nil
}

// withoutUnsent leaves out what was not sent: an apply would remove it.
func withoutUnsent(found []*Earlier) []*Earlier {
	return slices.DeleteFunc(found, func(e *Earlier) bool { return e.Unsent })
}

// read returns what entries say: accepted ones first, then those that may become it.
func (j *Journal) read(ctx context.Context, names []store.Name) ([]*Earlier, error) {
	found := make([]*Earlier, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16) // a bucket takes some 50 ms for each
	for i, name := range names {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, opTimeout)
			defer cancel()
			e, err := j.store.Read(ctx, name)
			if e != nil { // else it was just removed
				found[i], err = j.describe(ctx, name, *e)
			}
			return j.failed("read", err)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(e *Earlier) bool { return e == nil })
	slices.SortFunc(found, byUse)
	return found, nil
}

// byUse sorts accepted requests first, then those that may become it.
func byUse(a, b *Earlier) int {
	rank := []store.Status{store.Accepted, store.Pending, store.Unknown}
	return cmp.Or(cmp.Compare(slices.Index(rank, a.Status), slices.Index(rank, b.Status)), bySentAt(a, b))
}

func bySentAt(a, b *Earlier) int { return cmp.Or(a.SentAt.Compare(b.SentAt), cmp.Compare(a.ID, b.ID)) }

// creates returns all creates of other runs that no call has dealt with, as they were sent.
func (j *Journal) creates(ctx context.Context) ([]*Earlier, error) {
	names, err := j.list(ctx, "create-")
	found, readErr := j.read(ctx, names)
	slices.SortFunc(found, bySentAt)
	return withoutUnsent(found), errors.Join(err, readErr)
}

// Unseen returns the creates of other runs whose outcome no later run has read in a state, as they
// were sent: each job once, with the run that started it, and what has no response unless
// a person has given it up.
func (j *Journal) Unseen(ctx context.Context) ([]*Earlier, error) {
	found, err := j.creates(ctx)
	jobs := set{}
	return slices.DeleteFunc(found, func(e *Earlier) bool {
		isTakenOver := e.JobID != "" && jobs.has(e.JobID)
		jobs.add(e.JobID)
		return isTakenOver || e.GivenUp && e.Status == store.Unknown
	}), err
}
