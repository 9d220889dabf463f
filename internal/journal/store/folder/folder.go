// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package folder keeps texts in files.
package folder

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// temporary is how names start while their files are written. What a crash has left is
// removed after a while.
const (
	temporary    = ".tmp-"
	maxTemporary = time.Hour
)

// New returns the store of a scope in a root folder. The default one is made.
func New(root string, isDefault bool, scope string) store.Store {
	return &folder{root, isDefault, filepath.Join(root, scope), syncDir}
}

// folder keeps each text in a folder, in a file for each version: the highest number counts. Two writers cannot both make the
// file of one number, not even on a network's disk.
type folder struct {
	root      string
	isDefault bool
	dir       string // of the scope, in root

	syncDir func(path string) error // makes the names in a folder durable
}

func (f *folder) String() string          { return f.dir }
func (f *folder) Where(key string) string { return filepath.Join(f.dir, key) }
func (f *folder) IsLocal() bool           { return true }

func (f *folder) file(key string, number int) string {
	return filepath.Join(f.Where(key), strconv.Itoa(number)+store.Suffix)
}

// versionOf is the version of a file's number, which is 0 if there is no file.
func versionOf(number int) store.Version {
	if number == 0 {
		return ""
	}
	return store.Version(strconv.Itoa(number))
}

func (f *folder) List(ctx context.Context) (map[string]store.Listed, error) {
	files, err := f.read(ctx, f.dir)
	if err != nil {
		return nil, err
	}
	found := map[string]store.Listed{}
	for _, file := range files {
		key := file.Name()
		if !file.IsDir() || store.CheckKey(key) != nil {
			continue
		}
		var info fs.FileInfo
		number, err := f.onLatest(ctx, key, func(path string) (err error) { info, err = os.Stat(path); return err })
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		if number > 0 {
			found[key] = store.Listed{Version: versionOf(number), Written: info.ModTime()}
		}
	}
	return found, nil
}

func (f *folder) Get(ctx context.Context, key string) (text []byte, _ store.Version, _ error) {
	if err := store.CheckKey(key); err != nil {
		return nil, "", err
	}
	number, err := f.onLatest(ctx, key, func(path string) error {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		text, err = store.ReadText(file)
		return errors.Join(err, file.Close())
	})
	if err != nil {
		return nil, "", err
	}
	return text, versionOf(number), nil
}

// onLatest calls use with the file that counts, and returns its number. If there is none, it returns 0.
func (f *folder) onLatest(ctx context.Context, key string, use func(path string) error) (int, error) {
	var pause time.Duration
	for {
		number, err := f.latest(ctx, key)
		if err != nil || number == 0 {
			return 0, err
		}
		err = whenShared(ctx, func() error { return use(f.file(key, number)) })
		if !errors.Is(err, fs.ErrNotExist) {
			return number, err
		}
		if err := sleep.For(ctx, pause); err != nil { // there is a later one, which a network's disk may show a little later
			return 0, err
		}
		pause = min(2*pause+time.Millisecond, 100*time.Millisecond)
	}
}

// latest returns the number of the file that counts, or 0.
func (f *folder) latest(ctx context.Context, key string) (int, error) {
	numbers, err := f.numbers(ctx, key)
	if err != nil || len(numbers) == 0 {
		return 0, err
	}
	return slices.Max(numbers), nil
}

// numbers are those of a key's files, in any order.
func (f *folder) numbers(ctx context.Context, key string) (numbers []int, _ error) {
	files, err := f.read(ctx, f.Where(key))
	for _, file := range files {
		name, isText := strings.CutSuffix(file.Name(), store.Suffix)
		if number, err := strconv.Atoi(name); isText && err == nil && number > 0 && strconv.Itoa(number) == name {
			numbers = append(numbers, number)
		}
	}
	return numbers, err
}

// read lists a folder, which may be missing. It removes what crashes have left.
func (f *folder) read(ctx context.Context, dir string) (files []fs.DirEntry, _ error) {
	list := func() (err error) { files, err = os.ReadDir(dir); return err }
	err := whenShared(ctx, list)
	if err != nil && isMissing(dir) && f.mayBeEmpty() {
		return nil, nil
	}
	if errors.Is(err, fs.ErrNotExist) { // somebody has just made it, or, on Windows, it is a file
		err = list()
	}
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if strings.HasPrefix(file.Name(), temporary) {
			if info, err := file.Info(); err == nil && time.Since(info.ModTime()) > maxTemporary {
				_ = os.Remove(filepath.Join(dir, file.Name())) // else the next listing does it
			}
		}
	}
	return files, nil
}

// Put writes a file and then links it under its number, so that a reader never sees half a text.
func (f *folder) Put(ctx context.Context, key string, text []byte, ifVersion store.Version) (store.Version, error) {
	if err := errors.Join(store.CheckKey(key), store.CheckText(text)); err != nil {
		return "", err
	}
	before, err := f.latest(ctx, key)
	if err != nil {
		return "", err
	}
	if versionOf(before) != ifVersion {
		return "", store.ErrConflict
	}
	written, err := f.write(ctx, f.Where(key), text)
	if err != nil {
		return "", err
	}
	defer func() { _ = remove(context.WithoutCancel(ctx), written) }()
	return f.publish(ctx, key, written, before+1)
}

// publish makes a temporary file that of a number, if it is the next one.
func (f *folder) publish(ctx context.Context, key, written string, number int) (store.Version, error) {
	err := f.link(ctx, written, f.file(key, number))
	if errors.Is(err, fs.ErrExist) {
		return "", store.ErrConflict
	}
	if err != nil {
		return "", err
	}
	numbers, err := f.numbers(ctx, key)
	if err != nil {
		return "", err
	}
	// A number is free again once a later one is there, so only the highest has won. If the later one replaced this one, it is no
	// conflict, but the caller finds that out.
	if latest := slices.Max(append(numbers, 0)); latest != number {
		if latest > number {
			_ = os.Remove(f.file(key, number)) // else the next write does it
		}
		return "", store.ErrConflict
	}
	if err = f.syncDir(f.Where(key)); err != nil {
		return "", err
	}
	for _, earlier := range numbers {
		if earlier < number {
			_ = os.Remove(f.file(key, earlier)) // else the next write does it: on Windows, somebody may read it
		}
	}
	return versionOf(number), nil
}

// write writes a temporary file in a folder, which it makes.
func (f *folder) write(ctx context.Context, dir string, text []byte) (path string, _ error) {
	var file *os.File
	err := whenShared(ctx, func() (err error) {
		if err = f.makeDir(dir); err == nil {
			path := filepath.Join(dir, temporary+strings.ToLower(rand.Text()))
			file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // umask decides who may read it
		}
		return err
	})
	if err != nil {
		return "", err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, syncError(file.Sync()), file.Close(), ctx.Err()); err != nil {
		return "", errors.Join(err, remove(context.WithoutCancel(ctx), file.Name()))
	}
	return file.Name(), nil
}

// link gives a temporary file a name, which nothing may have.
func (f *folder) link(ctx context.Context, from, to string) error {
	err := whenShared(ctx, func() error { return link(from, to) })
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: the folder must be on a file system with hard links", err)
	}
	return err
}

// Prove tries names that nobody reads.
func (f *folder) Prove(ctx context.Context) error {
	name := filepath.Join(f.dir, temporary+"proof-"+rand.Text())
	defer func() { _ = remove(context.WithoutCancel(ctx), name) }()
	link := func() error {
		written, err := f.write(ctx, f.dir, nil)
		if err != nil {
			return err
		}
		defer func() { _ = remove(context.WithoutCancel(ctx), written) }()
		return f.link(ctx, written, name)
	}
	if err := link(); err != nil {
		return err
	}
	err := link()
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err == nil:
		return fmt.Errorf("two files in %s could get the same name, so two runs could send one prompt: "+
			"the folder must be on a file system with hard links", f.dir)
	}
	return err
}

// makeDir makes a folder in that of the scope, or that itself. A root that a person has named must exist: it may be on a
// volume that is not mounted.
func (f *folder) makeDir(path string) error {
	if path != f.dir {
		if err := f.mkdir(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if isMissing(f.dir) && f.isDefault {
		if err := f.mkdir(f.root); err != nil {
			return err
		}
		ignore := filepath.Join(f.root, ".gitignore")                      // or somebody would commit the journal
		if err := os.WriteFile(ignore, []byte("*\n"), 0o644); err != nil { //nolint:gosec // as others may read the folder
			return err
		}
	}
	if err := f.mkdir(f.dir); err != nil || path == f.dir {
		return err
	}
	return f.mkdir(path)
}

// mkdir makes a folder that a loss of power does not remove, unless it exists. The mode has no effect on Windows.
func (f *folder) mkdir(path string) error {
	err := os.Mkdir(path, 0o777) //nolint:gosec // umask and the parent's group decide who may use it
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.syncDir(filepath.Dir(path))
}

// mayBeEmpty reports whether a missing folder means that it is empty: the volume of a root that a person has named may
// not be mounted.
func (f *folder) mayBeEmpty() bool { return f.isDefault || !isMissing(f.root) }

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
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
		err := try()
		if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) || runtime.GOOS != "windows" {
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
