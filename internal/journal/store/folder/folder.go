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

func (f *folder) Name(key string) string { return filepath.Join(f.root, f.scope, key) }

func (f *folder) WritesAreCheap() bool { return true }

// opened is a folder in use. Its methods take paths in root, and reach nothing outside it.
type opened struct {
	*folder
	*os.Root
}

// open opens the root. A named one may be a link, and must exist: its volume may not be mounted. The
// default one is made for a writer; for a reader, the error is fs.ErrNotExist.
func (f *folder) open(writes bool) (opened, error) {
	info, err := os.Lstat(f.root)
	switch {
	case f.isDefault && err == nil && !info.IsDir():
		return opened{}, notOurs(f.root, "is no folder")
	case f.isDefault && writes && errors.Is(err, fs.ErrNotExist):
		if err = os.Mkdir(f.root, 0o777); err == nil { //nolint:gosec // umask and the parent's group decide who may use it
			err = f.syncDir(filepath.Dir(f.root))
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return opened{}, err
		}
	}
	root, err := os.OpenRoot(f.root)
	return opened{f, root}, err
}

// unlessEmpty drops a reader's error of open that only says that nothing was written yet.
func (f *folder) unlessEmpty(err error) error {
	if f.isDefault && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
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
	o, err := f.open(false)
	if err != nil {
		return nil, f.unlessEmpty(err)
	}
	defer func() { _ = o.Close() }()
	files, err := o.entries(ctx, f.scope)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		key := file.Name()
		if store.CheckKey(key) != nil {
			continue
		}
		text, err := o.get(ctx, key)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		if text.Exists() {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

func (f *folder) Get(ctx context.Context, key string) (store.Text, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Text{}, err
	}
	o, err := f.open(false)
	if err != nil {
		return store.Text{Key: key}, f.unlessEmpty(err)
	}
	defer func() { _ = o.Close() }()
	return o.get(ctx, key)
}

// get reads the file that counts.
func (o opened) get(ctx context.Context, key string) (store.Text, error) {
	var pause time.Duration
	for {
		numbers, err := o.numbers(ctx, key)
		if err != nil || len(numbers) == 0 {
			return store.Text{Key: key}, err
		}
		var body []byte
		latest := slices.Max(numbers)
		err = whenShared(ctx, func() (err error) { body, err = o.readFile(o.file(key, latest)); return err })
		switch {
		case err == nil:
			return store.Text{Key: key, Body: body, Version: versionOf(latest)}, nil
		case !errors.Is(err, fs.ErrNotExist):
			return store.Text{}, err
		}
		if err := sleep.For(ctx, pause); err != nil { // there is a later one, which a network's disk may show a little later
			return store.Text{}, err
		}
		pause = min(2*pause+time.Millisecond, 100*time.Millisecond)
	}
}

// numbers are those of a key's files, in any order.
func (o opened) numbers(ctx context.Context, key string) (numbers []int, _ error) {
	files, err := o.entries(ctx, filepath.Join(o.scope, key))
	for _, file := range files {
		name, isText := strings.CutSuffix(file.Name(), store.Suffix)
		if number, err := strconv.Atoi(name); isText && err == nil && number > 0 && strconv.Itoa(number) == name {
			numbers = append(numbers, number)
		}
	}
	return numbers, err
}

// entries lists a folder, which may be missing. It removes what crashes have left.
func (o opened) entries(ctx context.Context, dir string) (files []fs.DirEntry, _ error) {
	err := o.checkFolder(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = whenShared(ctx, func() error {
		listed, err := o.Open(dir)
		if err != nil {
			return err
		}
		files, err = listed.ReadDir(-1)
		return errors.Join(err, listed.Close())
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
	o, err := f.open(true)
	if err != nil {
		return store.Text{}, err
	}
	defer func() { _ = o.Close() }()
	numbers, err := o.numbers(ctx, over.Key)
	if err != nil {
		return store.Text{}, err
	}
	before := slices.Max(append(numbers, 0))
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
	if err = o.syncDir(o.folder.Name(key)); err != nil {
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
	o, err := f.open(true)
	if err != nil {
		return err
	}
	defer func() { _ = o.Close() }()
	name := filepath.Join(f.scope, temporary+"proof-"+rand.Text())
	defer func() { _ = o.remove(context.WithoutCancel(ctx), name) }()
	var errs [2]error
	for i := range errs {
		written, err := o.write(ctx, f.scope, nil)
		if err != nil {
			return err
		}
		errs[i] = o.link(ctx, written, name)
		_ = o.remove(context.WithoutCancel(ctx), written)
	}
	if errs[0] == nil && errs[1] == nil {
		return fmt.Errorf("two files in %s could get the same name, so two runs could send one prompt: "+
			"the folder must be on a file system with hard links", f.Name(""))
	}
	if errs[0] == nil && errors.Is(errs[1], fs.ErrExist) {
		return nil
	}
	return errors.Join(errs[:]...)
}
