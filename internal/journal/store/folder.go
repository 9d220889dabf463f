// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// temporary is how names start while their files are written. What a crash has left is
// removed after a while.
const (
	temporary    = ".tmp-"
	maxTemporary = time.Hour
)

// folder keeps each entry in a file.
type folder struct {
	root      string
	isDefault bool
	dir       string // of the scope, in root

	syncDir func(path string) error // makes the names in a folder durable
}

// sentSuffix is that of the file beside a pending entry whose request may have been sent.
const sentSuffix = ".sent"

func (f folder) String() string         { return f.dir }
func (f folder) mark(name Name) string  { return filepath.Join(f.dir, name.String()+sentSuffix) }
func (f folder) Where(name Name) string { return filepath.Join(f.dir, name.String()+suffix) }

func (f folder) List(ctx context.Context, prefix string) (found []Name, _ error) {
	var files []fs.DirEntry
	err := whenShared(ctx, func() (err error) { files, err = os.ReadDir(f.dir); return err })
	if isMissing(f.dir) && f.mayBeEmpty() { // Windows says of a file that the folder does not exist
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if strings.HasPrefix(file.Name(), temporary) {
			if info, err := file.Info(); err == nil && time.Since(info.ModTime()) > maxTemporary {
				_ = os.Remove(filepath.Join(f.dir, file.Name())) // else the next listing does it
			}
			continue
		}
		if !file.Type().IsRegular() || !strings.HasPrefix(file.Name(), prefix) {
			continue
		}
		name, ok, err := ofFile(file.Name())
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, name)
		}
	}
	return found, nil
}

func (f folder) Read(ctx context.Context, name Name) (*Entry, error) {
	var file *os.File
	err := whenShared(ctx, func() (err error) { file, err = os.Open(f.Where(name)); return err })
	if errors.Is(err, fs.ErrNotExist) && f.mayBeEmpty() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxEntry))
	info, statErr := file.Stat()
	if err = errors.Join(err, statErr); err != nil {
		return nil, err
	}
	return decode(text, info.ModTime()), nil
}

// Write writes a file and renames it, so that a reader never sees half an entry.
func (f folder) Write(ctx context.Context, name Name, e *Entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	var file *os.File
	err = whenShared(ctx, func() (err error) {
		if err = f.makeDir(); err == nil {
			file, err = os.CreateTemp(f.dir, temporary+"*") // readable by its owner only
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, syncError(file.Sync()), file.Close(), ctx.Err()); err == nil {
		err = whenShared(ctx, func() error { return replace(file.Name(), f.Where(name)) })
		if err == nil {
			err = f.syncDir(f.dir)
		}
	}
	if err != nil {
		return errors.Join(err, remove(ctx, file.Name()))
	}
	return ctx.Err()
}

// makeDir makes the folder of the scope. A folder that a person has named must exist: it may be on a
// volume that is not mounted. The modes have no effect on Windows.
func (f folder) makeDir() error {
	err := f.mkdir(f.dir)
	if errors.Is(err, fs.ErrNotExist) && f.isDefault {
		if err = f.mkdir(f.root); err == nil || errors.Is(err, fs.ErrExist) {
			err = f.mkdir(f.dir)
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err == nil && f.isDefault: // or somebody would commit the journal
		return os.WriteFile(filepath.Join(f.root, ".gitignore"), []byte("*\n"), 0o600)
	}
	return err
}

// mkdir makes a folder that a loss of power does not remove, with the entries in it.
func (f folder) mkdir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return f.syncDir(filepath.Dir(path))
}

// mayBeEmpty reports whether a missing entry means that there is none: the volume of a folder that a person has named may
// not be mounted.
func (f folder) mayBeEmpty() bool { return f.isDefault || !isMissing(f.root) }

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func (f folder) Remove(ctx context.Context, name Name) error {
	if !f.mayBeEmpty() {
		return &fs.PathError{Op: "remove", Path: f.root, Err: fs.ErrNotExist}
	}
	return errors.Join(remove(ctx, f.mark(name)), remove(ctx, f.Where(name)))
}

// MarkSent makes the mark and then looks for the entry, and RemoveUnsent removes the entry and then looks for the mark: so
// they cannot both succeed.
func (f folder) MarkSent(ctx context.Context, name Name) error {
	return whenShared(ctx, func() error {
		if err := os.WriteFile(f.mark(name), nil, 0o600); err != nil {
			return err
		}
		_, err := os.Stat(f.Where(name))
		return err
	})
}

func (f folder) IsSent(_ context.Context, name Name) (bool, error) {
	_, err := os.Stat(f.mark(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, err
}

func (f folder) RemoveUnsent(ctx context.Context, name Name) (isSent bool, _ error) {
	e, err := f.Read(ctx, name)
	if err != nil || e == nil {
		return false, err
	}
	if isSent, err = f.IsSent(ctx, name); isSent || err != nil {
		return isSent, err
	}
	if err = remove(ctx, f.Where(name)); err != nil {
		return false, err
	}
	if isSent, err = f.IsSent(ctx, name); isSent {
		return true, errors.Join(err, f.Write(ctx, name, e))
	}
	return false, err
}

// remove removes a file, which may be missing.
func remove(ctx context.Context, path string) error {
	err := whenShared(ctx, func() error { return os.Remove(path) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// whenShared retries what Windows refuses while another process, such as a virus
// scanner, has the file open.
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

// syncError drops the errors of file systems that cannot sync a file or a folder: older
// CIFS, some FUSE and VirtualBox shares, and exFAT on macOS (ENOTTY).
func syncError(err error) error {
	for _, unsupported := range []error{errors.ErrUnsupported, syscall.EINVAL, syscall.ENOENT, syscall.ENOTTY} {
		if errors.Is(err, unsupported) {
			return nil
		}
	}
	return err
}
