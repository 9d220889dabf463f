// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

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
	"strings"
	"syscall"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// How files are written durably, on disks and file systems as they are.

// write writes a temporary file in a folder of the scope, both of which it makes.
func (o opened) write(ctx context.Context, dir string, text []byte) (path string, _ error) {
	var file *os.File
	path = filepath.Join(dir, temporary+strings.ToLower(rand.Text()))
	err := whenShared(ctx, func() (err error) {
		if err = o.makeDir(dir); err == nil {
			file, err = o.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) // umask decides who may read it
		}
		return err
	})
	if err != nil {
		return "", err
	}
	_, err = file.Write(text)
	o.watermark(path)
	if err = errors.Join(err, syncError(file.Sync()), file.Close(), ctx.Err()); err == nil {
		o.watermark(path) // again, because Windows may set the time when the file is closed
		// Without the watermark, no later run would take it for ours.
		if err = o.checkFile(path); err != nil {
			err = fmt.Errorf("files in %s do not keep their modification times to the hundredth of a second, "+
				"by which records are told from what a checkout brings: name another folder in journal.url", o.folder.Name(""))
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

// makeDir makes a folder of the scope.
func (o opened) makeDir(dir string) error {
	if err := o.ignore(); err != nil {
		return err
	}
	for _, path := range []string{o.scope, dir} {
		if err := o.mkdir(path); err != nil {
			return err
		}
	}
	return o.checkFolder(dir)
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
