// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !windows

package folder

import (
	"errors"
	"io/fs"
	"os"
)

// link gives a file a second name, which nothing may have.
func link(root *os.Root, from, to string) error { return root.Link(from, to) }

// syncDir makes the names in a folder durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) { // it may be written to, but not read
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(syncError(dir.Sync()), dir.Close())
}
