// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const childEnv = "JOURNAL_TEST_CHILD"

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

// places are the stores that every rule is tried in. Tests that use them are
// named TestStores_*, so that -run 'S3|Stores' chooses what needs a real S3 server.
func places(t *testing.T, try func(t *testing.T, l Location)) {
	t.Helper()
	folders(t, try)
	t.Run("fake bucket", func(t *testing.T) { try(t, newFakeS3(t).location) })
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

func folders(t *testing.T, try func(t *testing.T, l Location)) {
	t.Helper()
	t.Run("default folder", func(t *testing.T) { try(t, Location{Folder: filepath.Join(t.TempDir(), "agent")}) })
	t.Run("named folder", func(t *testing.T) { try(t, Location{Named: true, Folder: filepath.Join(t.TempDir(), "agent")}) })
}

// open opens the journal as a process of its own in a run, and reports nothing.
func open(t *testing.T, l Location, run Run) (*Process, *Journal) {
	t.Helper()
	p, j := openReporting(t, l, run, func(err error) { t.Errorf("reported: %v", err) })
	return p, j
}

func openReporting(t *testing.T, l Location, run Run, report func(error)) (*Process, *Journal) {
	t.Helper()
	p := NewProcess(run, report)
	j, err := p.Open(Options{Location: l, RequestTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.store.close)
	return p, j
}

// crash ends a process as kill -9 does, as far as others can see.
func crash(j *Journal) { j.store.close() }

// reports are what a journal has reported.
type reports struct {
	mu   sync.Mutex
	errs []error
}

func (r *reports) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

func (r *reports) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.errs)
}

// send makes a call that is about to POST.
func send(t *testing.T, j *Journal, key Key, forJob string) *Call {
	t.Helper()
	c := j.Begin(t.Context(), key, forJob)
	if err := c.Sending(); err != nil {
		t.Fatal(err)
	}
	return c
}

// post makes a call whose POST starts or reaches a job.
func post(t *testing.T, j *Journal, key Key, forJob, jobID string) *Call {
	t.Helper()
	c := send(t, j, key, forJob)
	c.Answered(jobID)
	c.End()
	return c
}

// takeOver returns the job that a run takes over; "none" without one.
func takeOver(t *testing.T, j *Journal, key Key) string {
	t.Helper()
	o, err := j.TakeOver(t.Context(), key)
	if err != nil {
		t.Error(err)
	}
	return jobOf(o)
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

// takers has as many callers take the key over at once as there are journals.
func takers(t *testing.T, key Key, journals ...*Journal) []string {
	t.Helper()
	got := make([]string, len(journals))
	var wg sync.WaitGroup
	for i, j := range journals {
		wg.Go(func() { got[i] = takeOver(t, j, key) })
	}
	wg.Wait()
	slices.Sort(got)
	return got
}

// stored lists the entries in a store as KEY JOB OWNER, with names for the keys.
func stored(t *testing.T, l Location, names map[Key]string) []string {
	t.Helper()
	_, j := openReporting(t, l, "looks", func(error) {})
	entries, err := j.store.load(t.Context())
	crash(j)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		outcome := "pending"
		if e.Answered {
			outcome = e.JobID
		}
		got = append(got, fmt.Sprint(names[e.Key], " ", outcome, " ", e.owner()))
	}
	slices.Sort(got)
	return got
}

// faulty calls before ahead of each access to a store. Its error replaces the access.
type faulty struct {
	store
	before func(ctx context.Context, op string) error
	isDead func() bool
}

func (f *faulty) load(ctx context.Context) (entries []*entry, err error) {
	if err = f.before(ctx, "load"); err == nil {
		entries, err = f.store.load(ctx)
	}
	return entries, err
}

func (f *faulty) read(ctx context.Context, e *entry) (fresh *entry, err error) {
	if err = f.before(ctx, "read"); err == nil {
		fresh, err = f.store.read(ctx, e)
	}
	return fresh, err
}

func (f *faulty) write(ctx context.Context, e *entry) (err error) {
	if err = f.before(ctx, "write"); err == nil {
		err = f.store.write(ctx, e)
	}
	return err
}

func (f *faulty) claim(ctx context.Context, e *entry, run Run) (claimed bool, err error) {
	if err = f.before(ctx, "claim"); err == nil {
		claimed, err = f.store.claim(ctx, e, run)
	}
	return claimed, err
}

func (f *faulty) remove(ctx context.Context, e *entry) (err error) {
	if err = f.before(ctx, "remove"); err == nil {
		err = f.store.remove(ctx, e)
	}
	return err
}

func (f *faulty) dead(e *entry) bool { return f.isDead != nil && f.isDead() || f.store.dead(e) }

// fail makes a journal's accesses fail as before says.
func fail(j *Journal, before func(ctx context.Context, op string) error) *faulty {
	f := &faulty{store: j.store, before: before}
	j.store = f
	return f
}

// failing is errFault for each access of one kind.
func failing(kind string) func(context.Context, string) error {
	return func(_ context.Context, op string) error {
		return map[bool]error{true: errFault}[op == kind]
	}
}

// childJournal opens the journal that the test has named.
func childJournal() (*Process, *Journal) {
	var l Location
	location, _ := os.LookupEnv(childEnv + "_LOCATION")
	if err := json.Unmarshal([]byte(location), &l); err != nil {
		panic(err)
	}
	p := NewProcess(CurrentRun(), func(err error) { fmt.Println("reported:", err) })
	j, err := p.Open(Options{Location: l, RequestTimeout: time.Hour})
	if err != nil {
		panic(err)
	}
	return p, j
}

// child is a process that does what children says.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *bufio.Scanner
}

func startChild(t *testing.T, what string, l Location) *child {
	t.Helper()
	location, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: childCommand(t.Context(), what)}
	c.cmd.Env = append(c.cmd.Env, childEnv+"_LOCATION="+string(location))
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	c.stdout = bufio.NewScanner(stdout)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

func childCommand(ctx context.Context, what string) *exec.Cmd {
	binary, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.CommandContext(ctx, binary)
	cmd.Env = append(os.Environ(), childEnv+"="+what, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	return cmd
}

// line is what the child prints next.
func (c *child) line() string {
	c.t.Helper()
	if !c.stdout.Scan() {
		c.t.Fatalf("the child printed nothing: %v", c.stdout.Err())
	}
	return c.stdout.Text()
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}
