// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package folder

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// link gives a file a name, which nothing may have, and makes that durable where it can: os.Link does
// without that, but knows long paths on every version of Windows.
func link(from, to string) error {
	source, sourceErr := windows.UTF16PtrFromString(from)
	target, targetErr := windows.UTF16PtrFromString(to)
	if errors.Join(sourceErr, targetErr) == nil {
		if err := windows.MoveFileEx(source, target, windows.MOVEFILE_WRITE_THROUGH); err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return os.Link(from, to)
}

// syncDir does nothing: Windows cannot sync a folder.
func syncDir(string) error { return nil }
