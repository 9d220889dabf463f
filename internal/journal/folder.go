// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

const (
	lockSuffix = ".lock"
	// openAttempts bounds how often a folder is created again after another process removed it.
	openAttempts = 10
)

// folder keeps each entry in a file named ID-OWNER.json: a claim renames it, which
// only one process can do. Each process that writes holds a lock on a file named
// PROCESS.lock until it ends, however it ends.
type folder struct {
	dir   string
	self  string // id of this process
	named bool   // by the user: the folder stays when it is empty

	mu     sync.Mutex
	lock   *flock.Flock
	offset time.Duration // of the file system's clock
}

func (f *folder) String() string              { return f.dir }
func (f *folder) pollInterval() time.Duration { return 50 * time.Millisecond }

func (f *folder) now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().Round(0).Add(f.offset)
}

func (f *folder) path(e *entry) string {
	return filepath.Join(f.dir, e.id+"-"+string(e.owner())+suffix)
}

// splitName reads the name of an entry's file.
func splitName(name string) (id string, owner Run, ok bool) {
	base, isEntry := strings.CutSuffix(name, suffix)
	id, run, found := strings.Cut(base, "-")
	return id, Run(run), isEntry && found && validID(id)
}

func (f *folder) load(ctx context.Context) ([]*entry, error) {
	files, err := os.ReadDir(f.dir)
	if _, missing := os.Stat(f.dir); errors.Is(missing, fs.ErrNotExist) || err == nil && len(files) == 0 {
		return nil, nil // Windows says of a file that the folder does not exist
	}
	if err != nil {
		return nil, err
	}
	_ = f.takeLock() // a folder that cannot be written can be read
	var entries []*entry
	var unread error
	for _, file := range files {
		path := filepath.Join(f.dir, file.Name())
		id, owner, ok := splitName(file.Name())
		if !file.Type().IsRegular() || !ok {
			f.sweepLock(file.Name())
			continue
		}
		info, err := file.Info()
		if err == nil && info.Size() == 0 && f.now().Sub(info.ModTime()) < time.Minute {
			continue // another process is about to write it
		}
		switch e, err := f.readFile(ctx, path, id); {
		case err == nil:
			entries = append(entries, e)
		case errors.Is(err, errDamaged) && info != nil:
			entries = append(entries, &entry{id: id, Owner: owner, written: info.ModTime(), damage: err})
		case !errors.Is(err, fs.ErrNotExist):
			unread = errors.Join(unread, err)
		}
	}
	return entries, unread
}

// readFile reads an entry. Its owner is the one in the name.
func (f *folder) readFile(ctx context.Context, path, id string) (*entry, error) {
	var file *os.File
	err := whenShared(ctx, func() (err error) { file, err = os.Open(path); return err })
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxEntry))
	if err != nil {
		return nil, err
	}
	e, err := decodeEntry(id, text)
	if err != nil {
		return nil, err
	}
	_, e.Owner, _ = splitName(filepath.Base(path))
	e.written = info.ModTime()
	return e, nil
}

// find returns the files of an entry, whoever owns it.
func (f *folder) find(e *entry) []string {
	files, _ := os.ReadDir(f.dir)
	var paths []string
	for _, file := range files {
		if id, _, ok := splitName(file.Name()); ok && id == e.id {
			paths = append(paths, filepath.Join(f.dir, file.Name()))
		}
	}
	return paths
}

func (f *folder) read(ctx context.Context, e *entry) (*entry, error) {
	fresh, err := f.readFile(ctx, f.path(e), e.id)
	if errors.Is(err, fs.ErrNotExist) {
		for _, path := range f.find(e) {
			fresh, err = f.readFile(ctx, path, e.id)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return fresh, err
}

// write appends to the entry's file. Its last complete line counts, so a crash
// leaves the entry as it was.
func (f *folder) write(ctx context.Context, e *entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	file, created, err := f.open(f.path(e))
	if err != nil {
		return err
	}
	_, err = file.Write(slices.Concat([]byte{'\n'}, text, []byte{'\n'})) // a failed write may have left half a line
	if err == nil {
		err = file.Sync()
	}
	info, statErr := file.Stat()
	if err = errors.Join(err, statErr, file.Close(), ctx.Err()); err != nil {
		return err
	}
	e.written = info.ModTime()
	if created {
		return syncDir(f.dir)
	}
	return nil
}

// open opens a file to append, and creates it and the folder if necessary.
func (f *folder) open(path string) (file *os.File, created bool, err error) {
	for range openAttempts {
		if err = f.takeLock(); err == nil {
			if file, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0); err == nil {
				return file, false, nil
			}
			file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		}
		// Another process may just have removed the empty folder, or a user the
		// folder with our lock.
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		f.freeLock()
	}
	return file, true, err
}

func (f *folder) claim(ctx context.Context, e *entry, run Run) (bool, error) {
	from := f.path(e)
	claimed := *e
	claimed.Owner = run
	switch err := whenShared(ctx, func() error { return os.Rename(from, f.path(&claimed)) }); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	if fresh, err := f.readFile(ctx, f.path(&claimed), e.id); err == nil { // it may have been answered just before
		claimed = *fresh
	}
	*e = claimed
	return true, syncDir(f.dir)
}

func (f *folder) remove(ctx context.Context, e *entry) error {
	err := removeFile(ctx, f.path(e))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
		for _, path := range f.find(e) {
			err = errors.Join(err, removeFile(ctx, path))
		}
	}
	return err
}

// roomNeeded is the size of a small state of the CLI.
const roomNeeded = 64 << 10

// room returns an error if the disk is full.
func (f *folder) room(ctx context.Context) error {
	file, err := os.CreateTemp(f.dir, "*.tmp")
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, roomNeeded)) // not synced: the CLI kills a plugin that takes 2 s to end
	return errors.Join(err, file.Close(), removeFile(ctx, file.Name()))
}

// close removes the lock, and the default folder if it is empty.
func (f *folder) close() {
	f.freeLock()
	files, _ := os.ReadDir(f.dir)
	for _, file := range files {
		f.sweepLock(file.Name())
	}
	if !f.named {
		_ = os.Remove(f.dir)
	}
}

func removeFile(ctx context.Context, path string) error {
	return whenShared(ctx, func() error { return os.Remove(path) })
}

// whenShared retries what Windows refuses while another process, such as a virus
// scanner, has the file open or renames it.
func whenShared(ctx context.Context, try func() error) error {
	for range 40 {
		if err := try(); err == nil || errors.Is(err, fs.ErrNotExist) || runtime.GOOS != "windows" {
			return err
		}
		if err := sleep.For(ctx, 50*time.Millisecond); err != nil {
			break
		}
	}
	return try()
}

// syncDir makes new file names durable, where the system supports that.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
