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
	"syscall"
	"testing"
)

// nobody is a user who may do nothing.
const nobody = 65534

func init() {
	// full posts while files can grow to a few letters only, and answers when there is room again.
	children["full"] = func() {
		signal.Ignore(syscall.SIGXFSZ)
		_, j := childJournal()
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
		c := j.Begin(context.Background(), Request{Key: childKey})
		err := c.Sending()
		problem := c.Problem()
		limit(unlimited.Max)
		if err == nil {
			c.Answered("job-1")
		}
		c.End()
		fmt.Println(err != nil, problem != nil, c.Problem())
	}
	// unprivileged takes over without any rights.
	children["unprivileged"] = func() {
		if err := syscall.Setuid(nobody); err != nil {
			panic(err)
		}
		_, j := childJournal()
		for range 2 {
			o, err := j.Find(context.Background(), childKey)
			var problem error
			if o != nil {
				_, _, problem = j.Take(context.Background(), o)
			}
			fmt.Print(jobOf(o), " ", err != nil, " ", problem != nil, ", ")
		}
		_, err := j.Announce(context.Background(), childKey)
		fmt.Println(err != nil)
	}
}

// X05: the disk is full for a while, and a write stops in the middle of a line.
func TestFolder_full(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		startChild(t, "full", l).wantLines(in(l, "false true <nil>", "true false <nil>"))
		wantTakeOver(t, open(t, l, "second"), childKey, in(l, "job-1", "none"))
	})
}

// X05: without the rights to write or read, the default folder is of use as far
// as it goes, and a named one keeps requests from being sent.
func TestFolder_noRights(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	for _, test := range []struct {
		name             string
		folder, file     fs.FileMode
		byDefault, named string // twice what is found, whether that failed and whether it could not be taken, and whether a plan fails
	}{
		{"all rights", 0o777, 0o666, "job-1 false false, none false false, false", "job-1 false false, none false false, false"},
		{"the folder is read-only", 0o555, 0o444, "job-1 false true, none false false, false", "job-1 false true, none false false, false"},
		{"the entry cannot be read", 0o777, 0o000, "none false false, none false false, true", "none true false, none true false, true"},
		{"the folder cannot be read", 0o000, 0o666, "none false false, none false false, true", "none true false, none true false, true"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folders(t, func(t *testing.T, l Location) {
				path := pathOf(post(t, open(t, l, "first"), childKey, "", "job-1"))
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
