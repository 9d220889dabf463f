// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// slowStore answers after a while, and lists in pages of two names, each of another moment.
// Each access shows all that were complete before it began.
type slowStore struct {
	store.Store // names itself

	mu      sync.Mutex
	entries map[string]store.Entry
	keeps   bool          // refuses to delete
	least   time.Duration // half of what an access takes
}

func (s *slowStore) access(ctx context.Context, do func()) error {
	if err := sleep.For(ctx, s.least+rand.N(40*time.Millisecond)); err != nil {
		return err
	}
	s.mu.Lock()
	do()
	s.mu.Unlock()
	return sleep.For(ctx, s.least+rand.N(40*time.Millisecond))
}

func (s *slowStore) List(ctx context.Context, prefix string) (names []store.Name, _ error) {
	after, more := "", true
	for more {
		err := s.access(ctx, func() {
			more = false
			for _, text := range slices.Sorted(maps.Keys(s.entries)) {
				if text <= after || !strings.HasPrefix(text, prefix) {
					continue
				}
				if name, ok := store.ParseName(text); ok {
					names, after = append(names, name), text
				}
				if more = len(names)%2 == 0; more {
					break
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

func (s *slowStore) Read(ctx context.Context, name store.Name) (e *store.Entry, _ error) {
	return e, s.access(ctx, func() {
		if stored, ok := s.entries[name.String()]; ok {
			e = &stored
		}
	})
}

func (s *slowStore) Write(ctx context.Context, name store.Name, e *store.Entry) error {
	written := *e
	return s.access(ctx, func() { s.entries[name.String()] = written })
}

func (s *slowStore) Remove(ctx context.Context, name store.Name) error {
	if s.keeps {
		return errFault
	}
	return s.access(ctx, func() { delete(s.entries, name.String()) })
}

// TestStress plays runs that start at once, without a lock, each with aliases and equal
// creates, also in a store that is slower than the pauses between attempts. However they interleave, each create is
// sent once, and no two resources of a process share a job: those of two aliases may, which are two processes.
// A store that refuses to delete may block, but never sends twice.
func TestStress(t *testing.T) {
	seeds := map[string]int{"": 50, "more": 200, "all": 4000}[os.Getenv("EXPLORE")]
	blocked := 0
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			runs, aliases, equal, least := 3, 2, 2, time.Duration(0)
			if seed%4 == 3 {
				runs, equal, least = 2, 1, 500*time.Millisecond
			}
			slow := &slowStore{Store: store.Discard(), entries: map[string]store.Entry{}, keeps: seed%5 == 4, least: least}
			var jobs atomic.Int64
			startJob := func() string {
				time.Sleep(time.Duration(seed%7) * 100 * time.Millisecond)
				return fmt.Sprint("job-", jobs.Add(1))
			}
			var mu sync.Mutex
			outcomes := map[*Journal][]string{}
			var all sync.WaitGroup
			for run := range runs {
				start := rand.N(1 + time.Duration(seed%3)*100*time.Millisecond)
				for range aliases {
					process := &cli.Process{Run: cli.Run(fmt.Sprint("run", run)), Ended: func(cli.Sender) bool { return false }}
					j := &Journal{Options: Options{RequestTimeout: time.Minute}, store: slow, process: process}
					for range equal {
						all.Go(func() {
							time.Sleep(start)
							_, what := request(t, j, create, startJob)
							mu.Lock()
							defer mu.Unlock()
							outcomes[j] = append(outcomes[j], what)
						})
					}
				}
			}
			all.Wait()
			for j, got := range outcomes {
				run, has := j.process.Run, map[string]bool{}
				for _, what := range got {
					job := what[strings.LastIndexByte(what, ' ')+1:]
					if !strings.HasPrefix(job, "job-") {
						blocked++
						if !slow.keeps {
							t.Errorf("seed %d: %s is %s", seed, run, what)
						}
					} else if has[job] {
						t.Errorf("seed %d: resources of an alias of %s share a job: %q", seed, run, got)
					}
					has[job] = true
				}
			}
			if int(jobs.Load()) > aliases*equal {
				t.Errorf("seed %d: %d jobs for %d creates: %v", seed, jobs.Load(), aliases*equal, outcomes)
			}
		})
		if t.Failed() {
			break
		}
	}
	t.Logf("%d seeds, %d creates blocked by a store that refuses to delete", seeds, blocked)
}
