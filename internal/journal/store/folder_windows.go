// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// replace renames a file, and makes its new name durable where it can: os.Rename does
// without that, but knows long paths on every version of Windows.
func replace(from, to string) error {
	source, sourceErr := windows.UTF16PtrFromString(from)
	target, targetErr := windows.UTF16PtrFromString(to)
	if errors.Join(sourceErr, targetErr) == nil &&
		windows.MoveFileEx(source, target, windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH) == nil {
		return nil
	}
	return os.Rename(from, to)
}

// syncDir does nothing: Windows cannot sync a folder.
func syncDir(string) error { return nil }
