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
	// writable are the bits of a mode that no file of the provider has.
	writable fs.FileMode = 0o222
)

// New returns the store of a scope in a root folder. The default root is made if it is missing. It
// is in the working directory, so a checkout may have brought files into it.
func New(root string, isDefault bool, scope string) store.Store {
	return &folder{root, isDefault, scope, syncDir}
}

// folder keeps each text in a folder, with a file for each version: the one with the highest number
// counts. Two writers cannot both make the file of one number, not even on a network disk.
type folder struct {
	root      string
	isDefault bool
	scope     string // a folder in root

	syncDir func(path string) error // makes the names in a folder durable
}

func (f *folder) Place() store.Place {
	return store.Place{Name: filepath.Join(f.root, f.scope), IsLocal: true}
}

// opened is a folder in use. Its methods take paths in root, and reach nothing outside it.
type opened struct {
	*folder
	*os.Root
}

// open opens the root. A named one may be a link, and must exist: its volume may not be mounted.
func (f *folder) open() (opened, error) {
	if info, err := os.Lstat(f.root); err == nil && f.isDefault && !info.IsDir() {
		return opened{}, notOurs(f.root, "no folder")
	}
	root, err := os.OpenRoot(f.root)
	return opened{f, root}, err
}

// isEmpty reports whether an error of open means that nothing was written yet.
func (f *folder) isEmpty(err error) bool { return f.isDefault && errors.Is(err, fs.ErrNotExist) }

// openOrMake makes the default root if it is missing.
func (f *folder) openOrMake() (opened, error) {
	o, err := f.open()
	if !f.isEmpty(err) {
		return o, err
	}
	if err = os.Mkdir(f.root, 0o777); err == nil { //nolint:gosec // umask and the parent's group decide who may use it
		err = f.syncDir(filepath.Dir(f.root))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return opened{}, err
	}
	return f.open()
}

// notOurs is the error for what the provider never makes, so a checkout may have brought it: a link
// may lead anywhere, and reading a pipe may never end.
func notOurs(path, what string) error {
	return fmt.Errorf("%s is %s, so the provider did not make it, but a checkout or a copy: remove it, from the repository, too", path, what)
}

func (f *folder) file(key string, number int) string {
	return filepath.Join(f.scope, key, strconv.Itoa(number)+store.Suffix)
}

// versionOf is the version of a file's number, which is 0 if there is no file.
func versionOf(number int) store.Version {
	if number == 0 {
		return ""
	}
	return store.Version(strconv.Itoa(number))
}

func (f *folder) List(ctx context.Context) (keys []string, _ error) {
	o, err := f.open()
	if f.isEmpty(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = o.Close() }()
	files, err := o.read(ctx, f.scope)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		key := file.Name()
		if store.CheckKey(key) != nil {
			continue
		}
		number, err := o.onLatest(ctx, key, o.checkFile)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		if number > 0 {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

func (f *folder) Get(ctx context.Context, key string) (store.Text, error) {
	text := store.Text{Key: key}
	if err := store.CheckKey(key); err != nil {
		return store.Text{}, err
	}
	o, err := f.open()
	if f.isEmpty(err) {
		return text, nil
	}
	if err != nil {
		return store.Text{}, err
	}
	defer func() { _ = o.Close() }()
	number, err := o.onLatest(ctx, key, func(path string) error {
		if err := o.checkFile(path); err != nil {
			return err
		}
		file, err := o.Open(path)
		if err != nil {
			return err
		}
		text.Body, err = store.ReadBody(file)
		return errors.Join(err, file.Close())
	})
	if err != nil {
		return store.Text{}, err
	}
	text.Version = versionOf(number)
	return text, nil
}

// checkFile refuses what is no text of the provider. In the default root, a text is read-only,
// which no file of a Git checkout is.
func (o opened) checkFile(path string) error {
	info, err := o.Lstat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return notOurs(filepath.Join(o.root, path), "no regular file")
	case o.isDefault && info.Mode()&writable != 0:
		return notOurs(filepath.Join(o.root, path), "not read-only")
	}
	return nil
}

// checkFolder refuses links and files in a path: os.Root follows links that stay inside it.
func (o opened) checkFolder(path string) error {
	at := ""
	for part := range strings.SplitSeq(path, string(filepath.Separator)) {
		at = filepath.Join(at, part)
		info, err := o.Lstat(at)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return notOurs(filepath.Join(o.root, at), "no folder")
		}
	}
	return nil
}

// onLatest calls use with the file that counts, and returns its number, or 0 if there is none.
func (o opened) onLatest(ctx context.Context, key string, use func(path string) error) (int, error) {
	var pause time.Duration
	for {
		number, err := o.latest(ctx, key)
		if err != nil || number == 0 {
			return 0, err
		}
		err = whenShared(ctx, func() error { return use(o.file(key, number)) })
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
func (o opened) latest(ctx context.Context, key string) (int, error) {
	numbers, err := o.numbers(ctx, key)
	if err != nil || len(numbers) == 0 {
		return 0, err
	}
	return slices.Max(numbers), nil
}

// numbers are those of a key's files, in any order.
func (o opened) numbers(ctx context.Context, key string) (numbers []int, _ error) {
	files, err := o.read(ctx, filepath.Join(o.scope, key))
	for _, file := range files {
		name, isText := strings.CutSuffix(file.Name(), store.Suffix)
		if number, err := strconv.Atoi(name); isText && err == nil && number > 0 && strconv.Itoa(number) == name {
			numbers = append(numbers, number)
		}
	}
	return numbers, err
}

// read lists a folder, which may be missing. It removes what crashes have left.
func (o opened) read(ctx context.Context, dir string) (files []fs.DirEntry, _ error) {
	err := o.checkFolder(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = whenShared(ctx, func() error {
		opened, err := o.Open(dir)
		if err != nil {
			return err
		}
		files, err = opened.ReadDir(-1)
		return errors.Join(err, opened.Close())
	})
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if strings.HasPrefix(file.Name(), temporary) {
			if info, err := file.Info(); err == nil && time.Since(info.ModTime()) > maxTemporary {
				_ = o.Remove(filepath.Join(dir, file.Name())) // else the next listing does it
			}
		}
	}
	return files, nil
}

// Put writes a file and then links it under its number, so that a reader never sees half a text.
func (f *folder) Put(ctx context.Context, over store.Text, body []byte) (store.Text, error) {
	if err := errors.Join(store.CheckKey(over.Key), store.CheckBody(body)); err != nil {
		return store.Text{}, err
	}
	o, err := f.openOrMake()
	if err != nil {
		return store.Text{}, err
	}
	defer func() { _ = o.Close() }()
	before, err := o.latest(ctx, over.Key)
	if err != nil {
		return store.Text{}, err
	}
	if versionOf(before) != over.Version {
		return store.Text{}, store.ErrConflict
	}
	written, err := o.write(ctx, filepath.Join(f.scope, over.Key), body)
	if err != nil {
		return store.Text{}, err
	}
	defer func() { _ = o.remove(context.WithoutCancel(ctx), written) }()
	if err = o.publish(ctx, over.Key, written, before+1); err != nil {
		return store.Text{}, err
	}
	return store.Text{Key: over.Key, Body: body, Version: versionOf(before + 1)}, nil
}

// publish makes a temporary file that of a number, if it is the next one.
func (o opened) publish(ctx context.Context, key, written string, number int) error {
	err := o.link(ctx, written, o.file(key, number))
	if errors.Is(err, fs.ErrExist) {
		return store.ErrConflict
	}
	if err != nil {
		return err
	}
	numbers, err := o.numbers(ctx, key)
	if err != nil {
		return err
	}
	// Whoever writes a later number removes the earlier files, so this number may have been free again
	// although it was taken before. So only the highest number has won. If the later one replaced this
	// very write, that is a conflict, too: the caller finds out (see ErrConflict).
	if latest := slices.Max(append(numbers, 0)); latest != number {
		if latest > number {
			_ = o.Remove(o.file(key, number)) // else the next write does it
		}
		return store.ErrConflict
	}
	if err = o.syncDir(o.Place().Of(key)); err != nil {
		return err
	}
	for _, earlier := range numbers {
		if earlier < number {
			_ = o.Remove(o.file(key, earlier)) // else the next write does it: on Windows, somebody may read it
		}
	}
	return nil
}

// write writes a temporary file in a folder, which it makes. The file is read-only: see checkFile.
func (o opened) write(ctx context.Context, dir string, text []byte) (path string, _ error) {
	var file *os.File
	path = filepath.Join(dir, temporary+strings.ToLower(rand.Text()))
	err := whenShared(ctx, func() (err error) {
		if err = errors.Join(o.makeDir(dir), o.checkFolder(dir)); err == nil {
			file, err = o.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666&^writable) // umask decides who may read it
		}
		return err
	})
	if err != nil {
		return "", err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, syncError(file.Sync()), file.Close(), ctx.Err()); err == nil {
		if err = o.checkFile(path); err != nil { // no later run would take it for ours
			err = fmt.Errorf("no file in %s stays read-only, as a record must in a folder that a checkout may have filled", o.Place().Name)
		}
	}
	if err != nil {
		return "", errors.Join(err, o.remove(context.WithoutCancel(ctx), path))
	}
	return path, nil
}

// link gives a temporary file a name, which nothing may have.
func (o opened) link(ctx context.Context, from, to string) error {
	err := whenShared(ctx, func() error { return link(o.Root, from, to) })
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: the folder must be on a file system with hard links", err)
	}
	return err
}

// Prove links two files to one name, which nobody reads. The second link must be refused.
func (f *folder) Prove(ctx context.Context) error {
	o, err := f.openOrMake()
	if err != nil {
		return err
	}
	defer func() { _ = o.Close() }()
	name := filepath.Join(f.scope, temporary+"proof-"+rand.Text())
	defer func() { _ = o.remove(context.WithoutCancel(ctx), name) }()
	link := func() error {
		written, err := o.write(ctx, f.scope, nil)
		if err != nil {
			return err
		}
		defer func() { _ = o.remove(context.WithoutCancel(ctx), written) }()
		return o.link(ctx, written, name)
	}
	if err := link(); err != nil {
		return err
	}
	err = link()
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err == nil:
		return fmt.Errorf("two files in %s could get the same name, so two runs could send one prompt: "+
			"the folder must be on a file system with hard links", f.Place().Name)
	}
	return err
}

// makeDir makes the folder of a key, and that of the scope if it is missing.
func (o opened) makeDir(path string) error {
	if path != o.scope {
		if err := o.mkdir(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if _, err := o.Lstat(o.scope); errors.Is(err, fs.ErrNotExist) && o.isDefault {
		if err := o.ignore(); err != nil {
			return err
		}
	}
	if err := o.mkdir(o.scope); err != nil || path == o.scope {
		return err
	}
	return o.mkdir(path)
}

// ignore keeps Git from adding the journal. An existing .gitignore, perhaps a link, is left alone.
func (o opened) ignore() error {
	file, err := o.OpenFile(".gitignore", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString("*\n")
	return errors.Join(err, file.Close())
}

// mkdir makes a folder durably, unless it exists. The mode has no effect on Windows.
func (o opened) mkdir(path string) error {
	err := o.Mkdir(path, 0o777) // umask and the parent's group decide who may use it
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return o.syncDir(filepath.Dir(filepath.Join(o.root, path)))
}

// remove removes a file, which may be missing.
func (o opened) remove(ctx context.Context, path string) error {
	err := whenShared(ctx, func() error { return o.Remove(path) })
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
