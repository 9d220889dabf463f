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
	"slices"
	"strconv"
	"strings"
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
		return opened{}, notOurs(f.root, "is no folder")
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
