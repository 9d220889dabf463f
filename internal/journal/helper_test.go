// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

var (
	create, otherCreate   = store.CreateKey("p", "canary", ""), store.CreateKey("p", "canary 2", "")
	message, otherMessage = store.MessageKey("p", "job-1", "canary"), store.MessageKey("p", "job-1", "canary 2")
	keyNames              = map[Key]string{create: "create", otherCreate: "other create", message: "message", otherMessage: "other message"}
	errFault              = errors.New("a fault")
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, // connections to the S3 servers
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("net/http.(*conn).serve"))
}

// stores are the stores that every rule is tried in. Tests that use them are
// named TestStores_*, so that -run 'S3|Stores' chooses what needs a real server.
func stores(t *testing.T, try func(t *testing.T, l store.Location)) {
	t.Helper()
	t.Run("folder", func(t *testing.T) { try(t, folder(t)) })
	t.Run("fake bucket", func(t *testing.T) { try(t, parse(t, fakes3.New(t).URL)) })
	var unset []string
	for _, variable := range []string{"AGENT_TEST_S3", "AGENT_TEST_S3_SECOND", "AGENT_TEST_AZBLOB"} {
		url := os.Getenv(variable)
		if url == "" {
			unset = append(unset, variable)
			continue
		}
		t.Run(variable, func(t *testing.T) {
			l := parse(t, url)
			l.Prefix = store.NewName("", "").ID + "/"
			try(t, l)
		})
	}
	if unset != nil {
		t.Run("other servers", func(t *testing.T) { t.Skipf("%s not set: see make test-stores", strings.Join(unset, ", ")) })
	}
}

func folder(t *testing.T) store.Location {
	t.Helper()
	return store.Location{Folder: t.TempDir()}
}

func parse(t *testing.T, url string) store.Location {
	t.Helper()
	l, err := store.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// open opens the journal as a separate process in a run. Each process of another run has ended.
func open(t *testing.T, l store.Location, run cli.Run, forget ...string) *Journal {
	t.Helper()
	process := cli.This()
	process.Run = run
	process.Self.Start = string(run)
	process.Ended = func(s cli.Sender) bool { return s.Start != string(run) }
	return Open(process, Options{Place: Place{l, "scope"}, Forget: forget, RequestTimeout: time.Second})
}

// request does what package send does, with a service that always accepts. It returns what
// became of the request: "sent", "taken over" and its job, "blocked" or "failed".
func request(t *testing.T, j *Journal, key Key, startJob func() string) (*Call, string) {
	t.Helper()
	c := j.Begin(t.Context(), Request{Key: key, ProjectID: "p"})
	defer c.End()
	for {
		err := c.Sending()
		if err == nil {
			job := startJob()
			c.Accepted(job)
			return c, "sent " + job
		}
		var e *Earlier
		if errors.Is(err, ErrEarlier) {
			e, err = c.Earlier(t.Context())
		}
		switch {
		case err != nil:
			return c, "failed"
		case e == nil:
		case e.Status == store.Unknown && e.GivenUp && key.IsCreate():
			if c.GiveUp(e) != nil {
				return c, "failed"
			}
		case e.Status == store.Unknown:
			c.Supersede(e)
			return c, "blocked"
		case c.Take(e) != nil:
			return c, "failed"
		default:
			return c, "taken over " + e.JobID
		}
	}
}

// post is a request of a run that is killed after it.
func post(t *testing.T, l store.Location, run cli.Run, key Key, job string) *Call {
	t.Helper()
	c, got := request(t, open(t, l, run), key, func() string { return job })
	if got != "sent "+job {
		t.Fatalf("%s of %s: %s", keyNames[key], run, got)
	}
	return c
}

// lose is a request of a run that is killed before there is a response.
func lose(t *testing.T, l store.Location, run cli.Run, key Key) *Call {
	t.Helper()
	c := open(t, l, run).Begin(t.Context(), Request{Key: key, ProjectID: "p"})
	if err := errors.Join(c.Sending(), c.Sent()); err != nil {
		t.Fatal(err)
	}
	return c
}

// want asserts what becomes of requests, one after the other.
func want(t *testing.T, j *Journal, key Key, want ...string) (last *Call) {
	t.Helper()
	var got []string
	for range want {
		c, what := request(t, j, key, func() string { return "job-new" })
		got, last = append(got, what), c
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("requests of %s (-want +got):\n%s", j.process.Run, diff)
	}
	return last
}

// wantStored asserts the entries in a store, each as KEY JOB RUN.
func wantStored(t *testing.T, l store.Location, want ...string) {
	t.Helper()
	j := open(t, l, "looks")
	names, err := j.store.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range names {
		e, err := j.store.Read(t.Context(), name)
		if err != nil || strings.Contains(name.String()+e.Project+e.JobID, "canary") {
			t.Errorf("%s: %+v, %v", name, e, err)
			continue
		}
		outcome := string(e.Status)
		if e.Status == store.Accepted {
			outcome = e.JobID
		}
		got = append(got, keyNames[name.Key]+" "+outcome+" "+string(name.Run))
	}
	slices.Sort(got)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// outcomes are the jobs of requests, or "unknown".
func outcomes(found []*Earlier) (all []string) {
	for _, e := range found {
		all = append(all, cmp.Or(e.JobID, string(e.Status)))
	}
	return all
}

// wantFound asserts which requests a plan finds.
func wantFound(t *testing.T, j *Journal, key Key, want ...string) {
	t.Helper()
	found, err := j.Find(t.Context(), key)
	if diff := gocmp.Diff(want, outcomes(found)); diff != "" || err != nil {
		t.Errorf("found, %v (-want +got):\n%s", err, diff)
	}
}

// prune is a run that reads a state. It waits until nothing is being removed any more.
func prune(t *testing.T, j *Journal, ref Ref) Ref {
	t.Helper()
	remaining, err := j.Prune(t.Context(), ref)
	if err != nil {
		t.Error(err)
	}
	j.process.Drain(t.Context())
	return remaining
}

// faulty makes each access to a store within around.
type faulty struct {
	store.Store
	around func(ctx context.Context, op string, access func() error) error
}

// fail makes a journal's accesses fail as around says.
func fail(j *Journal, around func(ctx context.Context, op string, access func() error) error) {
	j.store = faulty{j.store, around}
}

// failing makes one kind of access fail, from the first to the last of these.
func failing(j *Journal, op string, first, last int) {
	number := 0
	fail(j, func(_ context.Context, tried string, access func() error) error {
		if tried == op {
			number++
		}
		if tried == op && first <= number && number <= last {
			return errFault
		}
		return access()
	})
}

// hang is an access to a store that does not respond.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (f faulty) List(ctx context.Context, prefix string) (names []store.Name, _ error) {
	err := f.around(ctx, "list", func() (err error) { names, err = f.Store.List(ctx, prefix); return err })
	return names, err
}

func (f faulty) Read(ctx context.Context, name store.Name) (e *store.Entry, _ error) {
	err := f.around(ctx, "read", func() (err error) { e, err = f.Store.Read(ctx, name); return err })
	return e, err
}

func (f faulty) Write(ctx context.Context, name store.Name, e *store.Entry) error {
	return f.around(ctx, "write", func() error { return f.Store.Write(ctx, name, e) })
}

func (f faulty) Remove(ctx context.Context, name store.Name) error {
	return f.around(ctx, "remove", func() error { return f.Store.Remove(ctx, name) })
}

func (f faulty) MarkSent(ctx context.Context, name store.Name) error {
	return f.around(ctx, "mark", func() error { return f.Store.MarkSent(ctx, name) })
}
