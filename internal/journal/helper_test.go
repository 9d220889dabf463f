// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// World is what runs share: a store, and which of them have ended.
type World struct {
	Apart bool // each run is on another machine, so none shows that it has ended

	texts store.Memory
	ended sync.Map // by run

	mu      sync.Mutex
	history []string // each write, in short
}

// End ends the process of a run.
func (w *World) End(run string) { w.ended.Store(run, true) }

func (w *World) hasEnded(s cli.ProcessID) bool {
	_, isEnded := w.ended.Load(s.Start)
	return isEnded && !w.Apart
}

// put writes a text whatever is there.
func (w *World) put(t *testing.T, name, body string) {
	t.Helper()
	text, _ := w.texts.Get(t.Context(), key("p", name))
	if _, err := w.texts.Put(t.Context(), text, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

// write writes the record of n, whatever is there; nil: none.
func (w *World) write(t *testing.T, r *Record) {
	t.Helper()
	if r == nil {
		return
	}
	r.Format = format
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	w.put(t, "n", string(body))
}

// record is the record of n, in short.
func (w *World) record(t *testing.T) string {
	t.Helper()
	text, _ := w.texts.Get(t.Context(), key("p", "n"))
	r, err := decode(text.Body, text.Key, true)
	if err != nil {
		return "free"
	}
	return short(r)
}

// short is "JOB REQUEST, claim REQUEST", where ? is an unknown outcome.
func short(r *Record) string {
	request := func(r *Entry) string {
		text := map[bool]string{true: "message", false: "create"}[r.IsMessage()]
		if r.Unknown {
			text += "?"
		}
		if r.Unsent {
			text = "unsent " + text
		}
		return text
	}
	var parts []string
	if r.Last != nil {
		parts = append(parts, strings.TrimSpace(r.JobID+" "+request(r.Last)))
	}
	for _, note := range []struct {
		is   bool
		text string
	}{{r.IsFreed(), "released"}, {r.Fate == Leave || r.Fate == Keep, "left by " + string(r.FateBy)}, {r.Holder == "theirs", "of theirs"}} {
		if note.is {
			parts = append(parts, note.text)
		}
	}
	if r.Claim != nil {
		parts = append(parts, "claim "+request(r.Claim))
	}
	return cmp.Or(strings.Join(parts, ", "), "free")
}

// Fault is what becomes of an access to a store.
type Fault int

// The faults.
const (
	None Fault = iota
	LostRequest
	LostResponse
	Repeated  // by a library
	Late      // it arrives when the client has given up
	Hangs     // until the client gives up
	denied    // to these credentials
	conflicts // as a write that is in progress, and not seen yet
	cancels   // the call, before the access
)

var errFault = errors.New("a fault")

// Store is the way of one process to the store of a world.
type Store struct {
	*World

	Local bool
	Fault func(op string) Fault // may be nil
	Delay time.Duration         // of what is late

	counting sync.Mutex
	ops      []string
}

// Name is what errors name.
func (s *Store) Name(key string) string { return "memory/" + key }

// WritesAreCheap reports what the test has set.
func (s *Store) WritesAreCheap() bool { return s.Local }

// access makes an access, perhaps with a fault.
func (s *Store) access(ctx context.Context, op string, do func() error) error {
	s.counting.Lock()
	s.ops = append(s.ops, op)
	s.counting.Unlock()
	f := None
	if s.Fault != nil {
		f = s.Fault(op)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch f {
	case LostRequest:
		return errFault
	case LostResponse:
		_ = do()
		return errFault
	case Repeated:
		_ = do()
	case Late:
		go func() {
			time.Sleep(s.Delay)
			_ = do()
		}()
		return errFault
	case denied:
		return fmt.Errorf("403: %w", store.ErrDenied)
	case conflicts:
		return store.ErrConflict
	case Hangs:
		_ = sleep.For(ctx, time.Hour)
		return context.Cause(ctx)
	case None, cancels:
	}
	return do()
}

// Took returns the accesses since it was called last.
func (s *Store) Took() string {
	s.counting.Lock()
	defer s.counting.Unlock()
	ops := strings.Join(s.ops, " ")
	s.ops = nil
	return ops
}

// List returns the keys.
func (s *Store) List(ctx context.Context) (keys []string, err error) {
	err = s.access(ctx, "list", func() error { keys, _ = s.texts.List(ctx); return nil })
	return keys, err
}

// Get returns what a key has.
func (s *Store) Get(ctx context.Context, key string) (text store.Text, err error) {
	err = s.access(ctx, "get", func() error { text, _ = s.texts.Get(ctx, key); return nil })
	return text, err
}

// Put stores a text.
func (s *Store) Put(ctx context.Context, over store.Text, body []byte) (store.Text, error) {
	var written store.Text // not a result: what is late sets it, too
	err := s.access(ctx, "put", func() (err error) {
		if written, err = s.texts.Put(ctx, over, body); err != nil {
			return err
		}
		r, err := decode(body, over.Key, true)
		if err = errors.Join(err, store.CheckKey(over.Key), store.CheckBody(body)); err != nil {
			panic(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.history = append(s.history, short(r))
		return nil
	})
	if err != nil {
		return store.Text{}, err
	}
	return written, nil
}

// Prove proves nothing.
func (s *Store) Prove(ctx context.Context) error {
	return s.access(ctx, "prove", func() error { return nil })
}

// times makes the n-th access of each kind have a fault. One that is not named has none.
func times(op string, faults ...Fault) func(string) Fault {
	var mu sync.Mutex
	n := 0
	return func(got string) Fault {
		mu.Lock()
		defer mu.Unlock()
		if got != op || n >= len(faults) {
			return None
		}
		n++
		return faults[n-1]
	}
}

// Open is a process of another run. Its store is a bucket.
func (w *World) Open(run string) (*Journal, *Store, *cli.Process) {
	s := &Store{World: w, Delay: time.Minute}
	process := &cli.Process{Run: cli.Run(run), Self: cli.ProcessID{Start: run}, Ended: w.hasEnded}
	return New(s, process, Options{RequestTimeout: time.Second}), s, process
}

func (w *World) open(run string) (*Journal, *Store) {
	j, s, _ := w.Open(run)
	return j, s
}

func create(name, prompt string) Wanted { return Wanted{Project: "p", Name: name, Prompt: prompt} }

func message(name, job, prompt string) Wanted {
	return Wanted{Project: "p", Name: name, Recipient: job, Prompt: prompt}
}

// claim claims a name for a request, until it says that it is being sent.
func claim(t *testing.T, j *Journal, w Wanted) *Call {
	t.Helper()
	c := j.Begin(t.Context(), w)
	_, err := c.Look(t.Context())
	if err := errors.Join(err, c.Claim(), c.BeforeBody()); err != nil {
		t.Fatal(err)
	}
	return c
}

// accepted makes a run create the jobs of names, each "job-NAME", with the prompt x.
func (w *World) accepted(t *testing.T, run string, names ...string) {
	t.Helper()
	for _, name := range names {
		j, _ := w.open(run)
		claim(t, j, create(name, "x")).Accepted("job-" + name)
	}
	w.history = nil
}

// inBubble runs a row of a table on a clock of its own.
func inBubble(t *testing.T, name string, row func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, row) })
}

// want compares what happened with what should.
func want[T any](t *testing.T, what string, got T, wanted T) {
	t.Helper()
	if diff := gocmp.Diff(wanted, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// wrote asserts what was written since the last call.
func (w *World) wrote(t *testing.T, wanted ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	want(t, "written", w.history, wanted)
	w.history = nil
}

// The requests of records below.
const lastID, claimID = "lastlastlastlast", "claimclaimclaimc"

// has is a record of an earlier run: of a create with the prompt x that the service has accepted.
func has(job string, edits ...func(*Record)) *Record {
	r := &Record{Project: "p", Name: "n", JobID: job, Holder: "own", Last: &Entry{ID: lastID, Prompt: Hash(lastID, "x"), Arguments: Hash("")}}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

func released(r *Record) { r.Fate = Release }
func unknown(r *Record)  { r.Last.Unknown = true }
func theirs(r *Record)   { r.Holder = "theirs" }
func empty(r *Record)    { r.JobID, r.Last = "", nil }
func unsent(r *Record)   { r.Claim.Unsent = true }
func expired(r *Record)  { r.Claim.Deadline = time.Now().Add(-time.Second) }

// left is a record whose job a Delete of a run has left to a create, or kept for it.
func left(by cli.Run) func(*Record) {
	return func(r *Record) {
		if r.FateBy = by; r.IsFreed() {
			r.Fate = Leave
		} else {
			r.Fate = Keep
		}
	}
}

// claimed is a record under the claim of a sender, which is sent unless it says otherwise.
func claimed(sender, job string, edits ...func(*Record)) func(*Record) {
	return func(r *Record) {
		r.Claim = &Entry{
			ID: claimID, Recipient: job, Prompt: Hash(claimID, "x"), Arguments: Hash(""), Sender: cli.ProcessID{Start: sender},
			SentAt: time.Now(), Deadline: time.Now().Add(time.Minute),
		}
		for _, edit := range edits {
			edit(r)
		}
	}
}
