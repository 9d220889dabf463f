// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !windows

package store

import (
	"errors"
	"os"
	"path/filepath"
)

// replace renames a file, and makes its new name durable.
func replace(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(syncError(dir.Sync()), dir.Close())
}
