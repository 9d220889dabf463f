// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// folderName is the journal's folder, in a folder of each test.
const folderName = "agent"

const (
	key      Key = "create-1"
	otherKey Key = "create-2"
	message  Key = "message-1"
)

// childEnv names what the test binary does as a child process.
const childEnv = "JOURNAL_TEST_CHILD"

// children are what a child process can be told to do.
var children = map[string]func(j *Journal, r *reports){
	// posts notes an intent and an answer, and then lives on.
	"posts": func(j *Journal, _ *reports) {
		note(j, key, "", "")
		note(j, key, "", "job_1")
		fmt.Println("ready")
		_, _ = io.ReadAll(os.Stdin)
	},
	// closes ends as it should once nobody writes to it any more.
	"closes": func(j *Journal, _ *reports) {
		note(j, key, "", "job_1").End()
		fmt.Println("ready")
		_, _ = io.ReadAll(os.Stdin)
		j.Close()
	},
}

func TestMain(m *testing.M) {
	if what := os.Getenv(childEnv); what != "" {
		r := new(reports)
		children[what](Open(folderName, r.add), r)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child is a process of its own that uses the journal in a folder.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.Closer
	stdout *bufio.Reader
}

func startChild(t *testing.T, what, dir string) *child {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: exec.CommandContext(t.Context(), binary)}
	c.cmd.Dir = filepath.Dir(dir)
	c.cmd.Env = append(os.Environ(), childEnv+"="+what, "GORACE=atexit_sleep_ms=0")
	c.cmd.Stderr = os.Stderr
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdin, c.stdout = stdin, bufio.NewReader(stdout)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

// ready waits until the child says that it is.
func (c *child) ready() {
	c.t.Helper()
	if line, err := c.stdout.ReadString('\n'); line != "ready\n" {
		c.t.Fatalf("the child said %q, %v", line, err)
	}
}

// kill ends the child as kill -9 does.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// finish lets the child come to its own end and returns what it said.
func (c *child) finish() string {
	c.t.Helper()
	_ = c.stdin.Close()
	said, err := io.ReadAll(c.stdout)
	if err := errors.Join(err, c.cmd.Wait()); err != nil {
		c.t.Fatalf("%v\n%s", err, said)
	}
	return string(said)
}

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

// openQuiet opens a journal that must not report anything.
func openQuiet(t testing.TB, dir string) *Journal {
	t.Helper()
	return Open(dir, func(err error) { t.Errorf("reported: %v", err) })
}

func folder(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), folderName)
}

// note notes a call: an empty step is an intent, "withdrawn" its withdrawal,
// everything else the id of the answer. The call goes on.
func note(j *Journal, key Key, steps ...string) *Call {
	return noteIn(context.Background(), j, key, steps...)
}

func noteIn(ctx context.Context, j *Journal, key Key, steps ...string) *Call {
	c := j.Begin(ctx, key)
	for _, step := range steps {
		switch step {
		case "":
			_ = c.Sending()
		case "withdrawn":
			c.Withdrawn()
		default:
			c.Answered(step)
		}
	}
	return c
}

// crash does to the journal what the end of its process does.
func crash(t testing.TB, j *Journal) {
	t.Helper()
	for _, r := range j.left.where(func(r *Left) bool { return r.taken }) {
		_ = r.claim.Close()
	}
	if j.lock == nil {
		return
	}
	if err := errors.Join(j.writer.file.Close(), j.lock.Close()); err != nil {
		t.Fatal(err)
	}
}

// crashed leaves in dir what a process leaves that noted the steps and crashed.
func crashed(t testing.TB, dir string, steps ...string) {
	t.Helper()
	j := openQuiet(t, dir)
	note(j, key, steps...)
	crash(t, j)
}

// write puts a file of a dead process into dir.
func write(t testing.TB, dir, text string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "dead"+fileSuffix)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// wantFiles checks how many journals are in dir; without any there must be no dir.
func wantFiles(t testing.TB, dir string, want int) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, file.Name())
	}
	got := len(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasSuffix(name, fileSuffix) }))
	if got != want || want == 0 && err == nil {
		t.Errorf("%d journals are there, want %d; the folder (%v) holds %q", got, want, err, names)
	}
}

// text returns the text of the only journal in dir.
func text(t testing.TB, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+fileSuffix))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v: not one journal", files, err)
	}
	read, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(read)
}

// take takes what is left under the key and returns its job id, "intent" when
// there is none, or "nothing".
func take(t testing.TB, j *Journal, key Key) (*Left, string) {
	t.Helper()
	switch r := j.Take(t.Context(), key); {
	case r == nil:
		return nil, "nothing"
	case r.JobID == "":
		return r, "intent"
	default:
		return r, r.JobID
	}
}

// takeAll takes everything that is left under the key.
func takeAll(t testing.TB, j *Journal, key Key) []string {
	t.Helper()
	var all []string
	for {
		r, id := take(t, j, key)
		if r == nil {
			return all
		}
		all = append(all, id)
	}
}

func rename(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
