// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var verdicts = map[Verdict]string{
	Send: "send", Wait: "wait", Adopt: "adopt", Beside: "beside", UnknownMessage: "sent, unknown", UnknownCreate: "unknown",
	AlreadySent: "already sent", OtherJob: "other job",
}

// world is what runs share: a store, and which of them have ended.
type world struct {
	mu      sync.Mutex
	kept    map[string]store.Text
	history []string // each write, in short
	ended   map[string]bool
}

func newWorld() *world { return &world{kept: map[string]store.Text{}, ended: map[string]bool{}} }

func (w *world) end(run string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended[run] = true
}

func (w *world) hasEnded(s cli.ProcessID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended[s.Start]
}

// record is that of the name n, in short.
func (w *world) record(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, err := decode(w.kept[key("p", name)].Body, key("p", name), true)
	if err != nil {
		return "nothing"
	}
	return short(r)
}

// short is "JOB REQUEST, claim REQUEST", where ? is an unknown outcome.
func short(r *Record) string {
	request := func(r *Request) string {
		text := map[bool]string{true: "message", false: "create"}[r.IsMessage]
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
	}{{r.Released, "released"}, {r.Left != "", "left by " + string(r.Left)}, {r.Holder != "", "adopted"}} {
		if note.is {
			parts = append(parts, note.text)
		}
	}
	if r.Claim != nil {
		parts = append(parts, "claim "+request(r.Claim))
	}
	return cmp.Or(strings.Join(parts, ", "), "free")
}

// fault is what becomes of an access to a store.
type fault int

const (
	none fault = iota
	lostRequest
	lostResponse
	repeated // by a library
	late     // it arrives when the client has given up
	denied
	hangs
	conflicts // as a write that is in progress, and not seen yet
)

var errFault = errors.New("a fault")

// client is the way of one process to the store of a world, or to a real one. A version is derived from the text, as an ETag is.
type client struct {
	*world

	real    store.Store // instead of that of the world
	isLocal bool
	fault   func(op string) fault // may be nil
	delay   time.Duration         // of what is late

	counting sync.Mutex
	ops      []string
}

func (c *client) Name(key string) string { return "memory/" + key }
func (c *client) IsLocal() bool          { return c.isLocal }

// access makes an access, perhaps with a fault.
func (c *client) access(ctx context.Context, op string, do func() error) error {
	c.counting.Lock()
	c.ops = append(c.ops, op)
	c.counting.Unlock()
	f := none
	if c.fault != nil {
		f = c.fault(op)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch f {
	case lostRequest:
		return errFault
	case lostResponse:
		_ = do()
		return errFault
	case repeated:
		_ = do()
	case late:
		go func() {
			time.Sleep(c.delay)
			_ = do()
		}()
		return errFault
	case denied:
		return fmt.Errorf("403: %w", store.ErrDenied)
	case conflicts:
		return store.ErrConflict
	case hangs:
		_ = sleep.For(ctx, time.Hour)
		return context.Cause(ctx)
	case none:
	}
	return do()
}

// took returns the accesses since it was called last.
func (c *client) took() string {
	c.counting.Lock()
	defer c.counting.Unlock()
	ops := strings.Join(c.ops, " ")
	c.ops = nil
	return ops
}

func (c *client) List(ctx context.Context) (keys []string, _ error) {
	err := c.access(ctx, "list", func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		keys = slices.Collect(maps.Keys(c.kept))
		return nil
	})
	return keys, err
}

func (c *client) Get(ctx context.Context, key string) (text store.Text, _ error) {
	err := c.access(ctx, "get", func() (err error) {
		if c.real != nil {
			text, err = c.real.Get(ctx, key)
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		text = c.kept[key]
		text.Key = key
		return nil
	})
	if err != nil {
		return store.Text{}, err
	}
	return text, nil
}

func (c *client) Put(ctx context.Context, over store.Text, body []byte) (store.Text, error) {
	var written store.Text // not a result: what is late sets it, too
	err := c.access(ctx, "put", func() (err error) {
		if c.real != nil {
			written, err = c.real.Put(context.WithoutCancel(ctx), over, body)
			return err
		}
		written, err = c.put(over, body)
		return err
	})
	if err != nil {
		return store.Text{}, err
	}
	return written, nil
}

func (w *world) put(over store.Text, body []byte) (store.Text, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, err := decode(body, over.Key, true)
	switch {
	case w.kept[over.Key].Version != over.Version:
		return store.Text{}, store.ErrConflict
	case errors.Join(err, store.CheckKey(over.Key), store.CheckBody(body)) != nil:
		panic(fmt.Sprintf("%s: %s", over.Key, body))
	}
	written := store.Text{Key: over.Key, Body: body, Version: store.Version(Hash(string(body)))}
	w.kept[over.Key] = written
	w.history = append(w.history, short(r))
	return written, nil
}

func (c *client) Prove(ctx context.Context) error {
	return c.access(ctx, "prove", func() error { return nil })
}

// times makes the n-th access of each kind have a fault. One that is not named has none.
func times(op string, faults ...fault) func(string) fault {
	var mu sync.Mutex
	n := 0
	return func(got string) fault {
		mu.Lock()
		defer mu.Unlock()
		if got != op || n >= len(faults) {
			return none
		}
		n++
		return faults[n-1]
	}
}

// open is a process of another run. Its store is a bucket.
func (w *world) open(run string, forget ...string) (*Journal, *client) {
	c := &client{world: w, delay: time.Minute}
	process := &cli.Process{Run: cli.Run(run), Self: cli.ProcessID{Start: run}, Ended: w.hasEnded}
	j := over(c, process, Options{Forget: forget, RequestTimeout: time.Second})
	j.isProven = true
	return j, c
}

func create(name, prompt string) Wanted { return Wanted{Project: "p", Name: name, Prompt: prompt} }

func message(name, job, prompt string) Wanted {
	return Wanted{Project: "p", Name: name, JobID: job, Prompt: prompt}
}

// request does what package send does, with a service that accepts everything. It returns what became of the request.
func request(t *testing.T, j *Journal, w Wanted, job string) string {
	t.Helper()
	c := j.Begin(t.Context(), w)
	result, r := follow(t.Context(), c, func() string {
		if err := c.BeforeBody(); err != nil {
			c.Withdrawn()
			return "failed"
		}
		c.Accepted(cmp.Or(w.JobID, job))
		return "sent"
	})
	if result == "adopted" {
		result += " " + r.JobID
	}
	return result
}

// follow does what package send does if a job with other arguments has finished, and one with the same is still running.
// attempt is a POST after its claim; empty: it is tried again.
func follow(ctx context.Context, c *Call, attempt func() string) (result string, r *Record) {
	for posts := c.wanted.JobID == ""; ; {
		if posts {
			err := c.Claim()
			if err == nil {
				if result := attempt(); result != "" {
					return result, nil
				}
				continue
			}
			if !errors.Is(err, ErrTaken) {
				return "failed", nil
			}
		}
		verdict, r, err := c.Look(ctx)
		if err != nil {
			return "failed", nil
		}
		switch posts = verdict == Send || verdict == Beside && !r.HasArguments(c.wanted); {
		case verdict == Adopt:
			if err := c.Adopt(); err == nil {
				return "adopted", r
			} else if !errors.Is(err, ErrTaken) {
				return "failed", r
			}
		case !posts:
			return verdicts[verdict], r
		}
	}
}

// claim claims a name for a request, as far as a mark that it is being sent.
func claim(t *testing.T, j *Journal, w Wanted) *Call {
	t.Helper()
	c := j.Begin(t.Context(), w)
	if _, _, err := c.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Claim(), c.BeforeBody()); err != nil {
		t.Fatal(err)
	}
	return c
}

// want compares what happened with what should.
func want[T any](t *testing.T, what string, got T, wanted T) {
	t.Helper()
	if diff := gocmp.Diff(wanted, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// wrote asserts what was written since the last call.
func (w *world) wrote(t *testing.T, wanted ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	want(t, "written", w.history, wanted)
	w.history = nil
}
