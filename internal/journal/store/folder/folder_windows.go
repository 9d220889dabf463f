// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// link gives a file a name, which nothing may have. MoveFileEx makes that durable, but may refuse a
// long path on older versions of Windows; os.Root does not.
func link(root *os.Root, from, to string) error {
	source, sourceErr := windows.UTF16PtrFromString(filepath.Join(root.Name(), from))
	target, targetErr := windows.UTF16PtrFromString(filepath.Join(root.Name(), to))
	if errors.Join(sourceErr, targetErr) == nil {
		if err := windows.MoveFileEx(source, target, windows.MOVEFILE_WRITE_THROUGH); err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return root.Link(from, to)
}

// syncDir does nothing: Windows cannot sync a folder.
func syncDir(string) error { return nil }
