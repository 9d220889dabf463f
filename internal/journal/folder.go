// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"cmp"
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
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// folder keeps each entry in a file named ID.json.
type folder struct {
	dir     string
	modTime func(fs.FileInfo) time.Time // of a file: whatever the clocks of the machines that share it
}

func (f folder) String() string              { return f.dir }
func (f folder) now() time.Time              { return time.Now().Round(0) }
func (f folder) pollInterval() time.Duration { return 50 * time.Millisecond }
func (f folder) where(id string) string      { return filepath.Join(f.dir, id+suffix) }

func (f folder) load(ctx context.Context) ([]*entry, error) {
	files, err := os.ReadDir(f.dir)
	if _, missing := os.Stat(f.dir); errors.Is(missing, fs.ErrNotExist) || err == nil && len(files) == 0 {
		return nil, nil // Windows says of a file that the folder does not exist
	}
	if err != nil {
		return nil, err
	}
	var entries []*entry
	var unread error
	for _, file := range files {
		id, isEntry := strings.CutSuffix(file.Name(), suffix)
		info, err := file.Info()
		if !isEntry || !validID(id) || !file.Type().IsRegular() || err != nil || info.Size() == 0 {
			continue // not ours, just removed, or about to be written
		}
		switch e, err := f.read(ctx, id); {
		case errors.Is(err, errDamaged):
			entries = append(entries, &entry{id: id, SentAt: f.modTime(info).UnixMilli(), damage: err})
		case err != nil:
			unread = errors.Join(unread, err)
		case e != nil:
			entries = append(entries, e)
		}
	}
	return entries, unread
}

func (f folder) read(ctx context.Context, id string) (*entry, error) {
	var file *os.File
	err := whenShared(ctx, func() (err error) { file, err = os.Open(f.where(id)); return err })
	if errors.Is(err, fs.ErrNotExist) {
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
	e, err := decodeEntry(id, text)
	if err == nil {
		e.SentAt = cmp.Or(e.SentAt, f.modTime(info).UnixMilli())
	}
	return e, err
}

// write appends to the entry's file. Its last complete line counts, so a crash
// leaves the entry as it was.
func (f folder) write(ctx context.Context, e *entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	var file *os.File
	err = whenShared(ctx, func() (err error) {
		file, err = os.OpenFile(f.where(e.id), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	text = slices.Concat([]byte{'\n'}, text, []byte{'\n'}) // a failed write may have left half a line
	if _, err = file.Write(text); err == nil {
		err = file.Sync()
	}
	info, statErr := file.Stat()
	if err = errors.Join(err, statErr, file.Close(), ctx.Err()); err != nil {
		return err
	}
	e.SentAt = cmp.Or(e.SentAt, f.modTime(info).UnixMilli())
	if info.Size() > int64(len(text)) {
		return nil // its name is durable already
	}
	return syncDir(f.dir)
}

func (f folder) remove(ctx context.Context, id string) (existed bool, _ error) {
	err := whenShared(ctx, func() error { return os.Remove(f.where(id)) })
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, err
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
