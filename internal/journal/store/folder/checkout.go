// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// The default root is in the working directory, so a checkout may have brought files into it, written
// by somebody who may change the repository. None of them may be taken for a record, or lead to a
// file elsewhere.

// watermark is the fraction of a second in the modification time of each file of the provider. No commit
// can bring it: a checkout sets the current time, or a commit's, which is in whole seconds. A mode
// would not do, because Git LFS, Perforce and Subversion make files read-only if a commit says so.
const watermark = 120 * time.Millisecond // few file systems keep less than hundredths

// notOurs is the error for what the provider never makes, so a checkout may have brought it: a link
// may lead anywhere, and reading a pipe may never end.
func notOurs(path, what string) error {
	return fmt.Errorf("%s %s, so it came with a checkout or a copy, not from the provider: remove it, also from the repository", path, what)
}

// checkFile refuses what is no text of the provider. In the default root, a text has the watermark.
func (o opened) checkFile(path string) error {
	info, err := o.Lstat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return notOurs(filepath.Join(o.root, path), "is no regular file")
	case o.isDefault && time.Duration(info.ModTime().Nanosecond()) != watermark:
		return notOurs(filepath.Join(o.root, path), "does not have the modification time that the provider gives its files")
	}
	return nil
}

// readFile reads a text of the provider.
func (o opened) readFile(path string) ([]byte, error) {
	if err := o.checkFile(path); err != nil {
		return nil, err
	}
	file, err := o.Open(path)
	if err != nil {
		return nil, err
	}
	body, err := store.ReadBody(file)
	return body, errors.Join(err, file.Close())
}

// watermark puts it on a file. Where that fails, checkFile finds out.
func (o opened) watermark(path string) {
	if info, err := o.Lstat(path); err == nil {
		watermarked := info.ModTime().Truncate(time.Second).Add(watermark)
		_ = o.Chtimes(path, watermarked, watermarked)
	}
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
			return notOurs(filepath.Join(o.root, at), "is no folder")
		}
	}
	return nil
}

// ignore keeps Git from adding the default root. An existing .gitignore, perhaps a link, is left alone.
func (o opened) ignore() error {
	if !o.isDefault {
		return nil
	}
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
