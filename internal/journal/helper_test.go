// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

// canary is a part of every request. No store may hold it.
const canary = "canary"

var (
	errFault = errors.New("a fault")

	create, otherCreate, pendingCreate = newKey(createPrefix, canary), newKey(createPrefix, canary, "2"), newKey(createPrefix, canary, "3")
	earlier, named, later, forOther    = newKey("message-", canary), newKey("message-", canary, "2"), newKey("message-", canary, "3"), newKey("message-", canary, "4")
	keyNames                           = map[Key]string{
		create: "create", otherCreate: "other create", pendingCreate: "pending create",
		earlier: "earlier", named: "named", later: "later", forOther: "for another job",
	}
)

func TestMain(m *testing.M) {
	if what := os.Getenv(childEnv); what != "" {
		children[what]()
		os.Exit(0)
	}
	idle := []goleak.Option{ // connections to the S3 servers
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("net/http.(*conn).serve"),
	}
	goleak.VerifyTestMain(m, idle...)
}

// stores are the stores that every rule is tried in. Tests that use them are
// named TestStores_*, so that -run 'S3|Stores' chooses what needs a real S3 server.
func stores(t *testing.T, try func(t *testing.T, l Location)) {
	t.Helper()
	folders(t, try)
	t.Run("fake bucket", func(t *testing.T) {
		_, l := newFakeS3(t)
		try(t, l)
	})
	t.Run("S3 bucket", func(t *testing.T) {
		url, found := os.LookupEnv("AGENT_TEST_S3")
		if !found || url == "" {
			t.Skip("AGENT_TEST_S3 is not set: make test-s3 runs this with a real S3 server")
		}
		l, err := ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		l.Prefix = newID() + "/"
		try(t, l)
	})
}

// folders are the default folder and one whose name the user chose: it is no pattern.
func folders(t *testing.T, try func(t *testing.T, l Location)) {
	t.Helper()
	t.Run("default folder", func(t *testing.T) { try(t, Location{Folder: filepath.Join(t.TempDir(), "agent")}) })
	t.Run("named folder", func(t *testing.T) {
		try(t, Location{Named: true, Folder: filepath.Join(t.TempDir(), "app[1] [ünï")})
	})
}

// inFolders runs a test in both folders, with a clock that tests can pass.
func inFolders(t *testing.T, try func(t *testing.T, l Location)) {
	t.Helper()
	folders(t, func(t *testing.T, l Location) {
		synctest.Test(t, func(t *testing.T) { try(t, l) })
	})
}

// in chooses what is expected in a store.
func in[T any](l Location, byDefault, named T) T {
	if l.Named {
		return named
	}
	return byDefault
}

func newFakeS3(t *testing.T) (*fakes3.Server, Location) {
	t.Helper()
	server := fakes3.New(t)
	l, err := ParseURL(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return server, l
}

// onRun is this host with another run of the CLI.
func onRun(run Run) Host {
	host := ThisHost()
	host.Run = run
	return host
}

// open opens the journal as a separate process in a run.
func open(t *testing.T, l Location, run Run) *Journal {
	t.Helper()
	j, err := NewProcess(onRun(run), func(err error) { t.Error(err) }).Open(Options{Location: l, Scope: "scope", RequestTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// next opens the journal in the next run, when all senders have ended.
func next(t *testing.T, l Location, run Run) *Journal {
	t.Helper()
	j := open(t, l, run)
	j.process.Ended = func(Sender) bool { return true }
	return j
}

// wantNotices asserts how much was noticed.
func wantNotices(t *testing.T, j *Journal, n int) error {
	t.Helper()
	notices, _ := j.Report(nil)
	if len(notices) != n {
		t.Errorf("noticed: %v, want %d", notices, n)
	}
	return errors.Join(notices...)
}

// send makes a call that is about to POST.
func send(t *testing.T, j *Journal, key Key, forJob string) *Call {
	t.Helper()
	return sendIn(t.Context(), t, j, key, forJob)
}

func sendIn(ctx context.Context, t *testing.T, j *Journal, key Key, forJob string) *Call {
	t.Helper()
	c := j.Begin(ctx, Request{Key: key, ProjectID: "proj_1", JobID: forJob})
	if err := c.Sending(); err != nil {
		t.Fatal(err)
	}
	return c
}

// post makes a call whose POST starts or reaches a job.
func post(t *testing.T, j *Journal, key Key, forJob, jobID string) *Call {
	t.Helper()
	c := send(t, j, key, forJob)
	c.Accepted(jobID)
	c.End()
	return c
}

// takeOver returns the job that a process takes over; "none" without one.
func takeOver(t *testing.T, j *Journal, key Key) string {
	t.Helper()
	for {
		o, err := j.Find(t.Context(), key)
		if err != nil {
			t.Error(err)
		}
		if o == nil || o.Unknown {
			return jobOf(o)
		}
		taken, _, err := j.Take(t.Context(), o)
		if err != nil {
			t.Error(err)
		}
		if taken {
			return o.JobID
		}
	}
}

func jobOf(o *Orphan) string {
	switch {
	case o == nil:
		return "none"
	case o.JobID == "":
		return "unknown"
	}
	return o.JobID
}

// wantTakeOver asserts what a process takes over, one after the other.
func wantTakeOver(t *testing.T, j *Journal, key Key, want ...string) {
	t.Helper()
	var got []string
	for range want {
		got = append(got, takeOver(t, j, key))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("taken over by %s (-want +got):\n%s", j.process.Run, diff)
	}
}

// wantStored asserts the entries in a store, each as KEY JOB RUN.
func wantStored(t *testing.T, l Location, want ...string) {
	t.Helper()
	entries, err := open(t, l, "looks").store.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if text, err := json.Marshal(e); err != nil || strings.Contains(string(text), canary) {
			t.Errorf("entry %s, %v", text, err)
		}
		outcome := "pending"
		if e.Accepted {
			outcome = e.JobID
		}
		got = append(got, fmt.Sprint(keyNames[e.Key], " ", outcome, " ", e.Run))
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	list, _ := os.ReadDir(l.Folder) // a bucket has none
	for _, file := range list {
		if text, err := os.ReadFile(filepath.Join(l.Folder, file.Name())); err != nil || strings.Contains(file.Name()+string(text), canary) {
			t.Errorf("%s: %s, %v", file.Name(), text, err)
		}
	}
}

// faulty calls before ahead of each access to a store. Its error replaces the access.
type faulty struct {
	store
	before func(ctx context.Context, op string) error
}

// fail makes a journal's accesses of one kind fail as before says.
func fail(j *Journal, op string, before func(ctx context.Context) error) *faulty {
	f := &faulty{store: j.store, before: func(ctx context.Context, tried string) error {
		if tried != op {
			return nil
		}
		return before(ctx)
	}}
	j.store = f
	return f
}

func fault(context.Context) error { return errFault }

func (f *faulty) load(ctx context.Context) ([]*entry, error) {
	if err := f.before(ctx, "load"); err != nil {
		return nil, err
	}
	return f.store.load(ctx)
}

func (f *faulty) read(ctx context.Context, id string) (*entry, error) {
	if err := f.before(ctx, "read"); err != nil {
		return nil, err
	}
	return f.store.read(ctx, id)
}

func (f *faulty) write(ctx context.Context, e *entry) error {
	if err := f.before(ctx, "write"); err != nil {
		return err
	}
	return f.store.write(ctx, e)
}

func (f *faulty) remove(ctx context.Context, id string) (bool, error) {
	if err := f.before(ctx, "remove"); err != nil {
		return true, err
	}
	return f.store.remove(ctx, id)
}
