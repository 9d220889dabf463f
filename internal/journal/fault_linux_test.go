// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nobody is a user who may do nothing.
const nobody = 65534

func init() {
	// full notes calls while files can grow to a few lines only, and goes on
	// when there is room again: a write stops in the middle of a line.
	children["full"] = func(j *Journal, r *reports) {
		signal.Ignore(syscall.SIGXFSZ)
		var unlimited syscall.Rlimit
		err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &unlimited)
		note(j, key, "", "job_1")
		if err == nil {
			err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100, Max: unlimited.Max})
		}
		call := note(j, key, "", "job_2")
		if err == nil {
			err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &unlimited)
		}
		call.Answered("job_3")
		fmt.Println(len(r.errs), err)
	}
	// unprivileged takes and settles what is left, and posts, without any rights.
	children["unprivileged"] = func(j *Journal, r *reports) {
		err := syscall.Setuid(nobody)
		call := note(j, otherKey, "", "job_2")
		if left := j.Take(call.ctx, key); left != nil {
			fmt.Print("took ")
			if j.Take(call.ctx, key) != nil {
				fmt.Print("it twice ")
			}
			j.Settle(left)
		}
		if j.HasLeft() {
			fmt.Print("again ")
		}
		call.End()
		j.Close()
		fmt.Println(len(r.errs), err)
	}
}

// Red without torn: the line after the half one would be lost with it.
func TestX05_disk_full_for_a_while(t *testing.T) {
	dir := folder(t)
	if said := startChild(t, "full", dir).finish(); said != "1 <nil>\n" {
		t.Errorf("the child said %q, want one report", said)
	}
	r := new(reports)
	j := Open(dir, r.add)
	if got := takeAll(t, j, key); !cmp.Equal(got, []string{"job_1", "job_3"}) {
		t.Errorf("took %q", got)
	}
	if len(r.errs) != 1 {
		t.Errorf("%d reports of the half line: %v", len(r.errs), r.errs)
	}
	crash(t, j)
}

// Every write fails: one report, and the next file gets its chance.
func TestX05_disk_full(t *testing.T) {
	r := new(reports)
	j := Open(folder(t), r.add)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	j.writer.file = full
	for range 3 {
		note(j, key, "", "withdrawn", "", "job_1").End()
	}
	if len(r.errs) != 1 || !strings.Contains(fmt.Sprint(r.errs), syscall.ENOSPC.Error()) {
		t.Errorf("reports: %v", r.errs)
	}
	if err := full.Close(); err != nil {
		t.Fatal(err)
	}
	j.Close()
}

func TestX05_no_rights(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	tests := []struct {
		name         string
		folder, file fs.FileMode
		want         string
		left         int
		again        string // what the next process finds
	}{
		{"all rights", 0o777, 0o666, "took 0 <nil>\n", 0, "nothing"},
		{"folder is read-only", 0o555, 0o666, "took 1 <nil>\n", 1, "nothing"}, // the file is emptied
		{"folder and file are read-only", 0o555, 0o444, "took 1 <nil>\n", 1, "intent"},
		{"file is read-only", 0o777, 0o444, "took 0 <nil>\n", 0, "nothing"}, // it can be removed
		{"file cannot be read", 0o777, 0o000, "1 <nil>\n", 1, "intent"},
		{"folder cannot be read", 0o000, 0o666, "1 <nil>\n", 1, "intent"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t)
			crashed(t, dir, "")
			locks, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil || len(locks) != 2 {
				t.Fatalf("%q, %v", locks, err)
			}
			chmod(t, filepath.Dir(filepath.Dir(dir)), 0o755)
			chmod(t, filepath.Dir(dir), 0o777)
			chmod(t, dir, test.folder)
			for _, path := range locks {
				mode := test.file
				if strings.HasSuffix(path, lockSuffix) {
					mode = 0o666
				}
				chmod(t, path, mode)
			}
			if said := startChild(t, "unprivileged", dir).finish(); said != test.want {
				t.Errorf("the child said %q, want %q", said, test.want)
			}
			wantFiles(t, dir, test.left)
			j := openQuiet(t, dir)
			if _, id := take(t, j, key); id != test.again {
				t.Errorf("the next process took %s, want %s", id, test.again)
			}
			crash(t, j)
		})
	}
}

func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
