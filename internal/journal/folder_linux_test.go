// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is a user who may do nothing.
const nobody = 65534

func init() {
	// full posts while files can grow to a few letters only, answers when there is
	// room again, and ends undisturbed when there is little.
	children["full"] = func() {
		signal.Ignore(syscall.SIGXFSZ)
		p, j := childJournal()
		var unlimited syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &unlimited); err != nil {
			panic(err)
		}
		limit := func(size uint64) {
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: unlimited.Max}); err != nil {
				panic(err)
			}
		}
		limit(50)
		c := j.Begin(context.Background(), childKey, "")
		err := c.Sending()
		limit(unlimited.Max)
		if err == nil {
			c.Answered("job-1")
		}
		c.End()
		limit(1 << 10)
		p.Close(context.Background())
		fmt.Println(err != nil, c.Unrecorded(), p.clean)
	}
	// unprivileged takes over, and ends undisturbed, without any rights.
	children["unprivileged"] = func() {
		if err := syscall.Setuid(nobody); err != nil {
			panic(err)
		}
		p, j := childJournal()
		reported := 0
		j.report = func(error) { reported++ }
		for range 2 {
			o, err := j.TakeOver(context.Background(), childKey)
			fmt.Print(jobOf(o), " ", err != nil, ", ")
		}
		p.Close(context.Background())
		fmt.Println(reported > 0)
	}
}

// X05: the disk is full for a while, and a write stops in the middle of a line.
// X09: a run for whose state the disk may have no room forgets nothing.
func TestFolder_full(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		child := startChild(t, "full", l)
		for range in(l, 2, 0) {
			if line := child.line(); !strings.HasPrefix(line, "reported: ") {
				t.Error(line)
			}
		}
		child.wantLines(in(l, "false <nil> true", "true <nil> true"))
		child.kill()
		if left, _ := filepath.Glob(filepath.Join(l.Folder, "*.tmp")); len(left) != 0 {
			t.Errorf("left behind: %q", left)
		}
		wantTakeOver(t, open(t, l, "second"), childKey, in(l, "job-1", "none"))
	})
}

// X05: without the rights to claim or read, the default folder is of use as far
// as it goes, and a named one keeps requests from being sent.
func TestFolder_noRights(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	for _, test := range []struct {
		name             string
		folder, file     fs.FileMode
		byDefault, named string // twice what is taken over and whether that failed, and whether anything was reported
	}{
		{"all rights", 0o777, 0o666, "job-1 false, none false, false", "job-1 false, none false, false"},
		{"the folder is read-only", 0o555, 0o444, "job-1 false, none false, true", "none true, none true, false"},
		{"the entry cannot be read", 0o777, 0o000, "none false, none false, true", "none true, none true, false"},
		{"the folder cannot be read", 0o000, 0o666, "none false, none false, true", "none true, none true, false"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folders(t, func(t *testing.T, l Location) {
				j := open(t, l, "first")
				path := pathOf(post(t, j, childKey, "", "job-1"))
				crash(j)
				for path, mode := range map[string]fs.FileMode{
					filepath.Dir(filepath.Dir(l.Folder)): 0o755, filepath.Dir(l.Folder): 0o755, path: test.file, l.Folder: test.folder,
				} {
					if err := os.Chmod(path, mode); err != nil {
						t.Fatal(err)
					}
				}
				startChild(t, "unprivileged", l).wantLines(in(l, test.byDefault, test.named))
			})
		})
	}
}
