// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// takeLock creates the folder and this process's lock in it. The lock's time is
// that of the file system's clock.
func (f *folder) takeLock() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lock != nil {
		return nil
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(f.dir, f.self+lockSuffix))
	locked, err := lock.TryLock()
	if err != nil {
		return err
	}
	info, err := os.Stat(lock.Path())
	if !locked || err != nil { // another process has just swept it
		return errors.Join(err, lock.Close(), fs.ErrNotExist)
	}
	f.offset = time.Until(info.ModTime())
	f.lock = lock
	return nil
}

// dead reports whether nobody holds the lock of the entry's sender.
func (f *folder) dead(e *entry) bool {
	if !validID(e.Sender.ID) {
		return true
	}
	path := filepath.Join(f.dir, e.Sender.ID+lockSuffix)
	if _, err := os.Stat(path); err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	lock := flock.New(path)
	free, err := lock.TryRLock() // shared, so that other readers are not taken for the sender
	_ = lock.Close()
	return err == nil && free
}

// sweepLock removes the lock of a process that has ended: dead does not need it.
func (f *folder) sweepLock(name string) {
	id, isLock := strings.CutSuffix(name, lockSuffix)
	if !isLock || !validID(id) {
		return
	}
	lock := flock.New(filepath.Join(f.dir, name))
	if free, err := lock.TryLock(); err == nil && free {
		_ = os.Remove(lock.Path())
	}
	_ = lock.Close()
}

func (f *folder) freeLock() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lock != nil {
		_ = f.lock.Close()
		_ = os.Remove(f.lock.Path())
		f.lock = nil
	}
}
