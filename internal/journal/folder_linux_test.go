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
			c.Accepted("job-1")
		}
		c.End()
		fmt.Println(shown("permission to send", err), shown("record", problem), shown("response", c.Problem()))
	}
	// unprivileged takes over without any rights.
	children["unprivileged"] = func() {
		if err := syscall.Setuid(nobody); err != nil {
			panic(err)
		}
		_, j := childJournal()
		for range 2 {
			o, err := j.Find(context.Background(), childKey)
			fmt.Print(shown("find", err), " ", jobOf(o), ", ")
			if o != nil {
				_, _, err = j.Take(context.Background(), o)
				fmt.Print(shown("take", err), ", ")
			}
		}
		_, err := j.Announce(context.Background(), childKey)
		fmt.Println(shown("announce", err))
	}
}

// shown is how a child prints whether something succeeded.
func shown(what string, err error) string {
	if err != nil {
		return what + " failed"
	}
	return what + " ok"
}

// X05: the disk is full for a while, and a write stops in the middle of a line.
func TestFolder_full(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		startChild(t, "full", l).wantLines("permission to send " + in(l, "ok record failed", "failed record ok") + " response ok")
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
		byDefault, named string // what the child prints
	}{
		{"all rights", 0o777, 0o666, "find ok job-1, take ok, find ok none, announce ok", "find ok job-1, take ok, find ok none, announce ok"},
		{"the folder is read-only", 0o555, 0o444, "find ok job-1, take failed, find ok none, announce ok", "find ok job-1, take failed, find ok none, announce ok"},
		{"the entry cannot be read", 0o777, 0o000, "find ok none, find ok none, announce failed", "find failed none, find failed none, announce failed"},
		{"the folder cannot be read", 0o000, 0o666, "find ok none, find ok none, announce failed", "find failed none, find failed none, announce failed"},
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
