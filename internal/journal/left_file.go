// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// maxFile is the longest file that is read: about 200,000 requests.
const maxFile = 64 << 20

var errTooLong = errors.New("too long to be a journal; remove it by hand")

// leftFile is the file of a process that has crashed. Its requests only get
// fewer: all that living processes append is that some are settled.
type leftFile struct {
	name string        // path without suffix
	size int64         // when it was read
	left map[int]*Left // by number, not settled; nil: it could not be read
}

// scan reads the files of the processes that have died, each once.
func (l *left) scan() {
	for _, name := range l.names() {
		if l.files[name] != nil {
			continue
		}
		lock := flock.New(name + lockSuffix)
		locked, err := lock.TryRLock() // shared: others that look are not taken for the owner
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.journal.failed(err)
		}
		if !locked {
			continue
		}
		file, err := readFile(name)
		_ = lock.Close()
		if err != nil {
			l.journal.failed(err)
		}
		l.files[name] = file
		if file.left != nil && len(file.left) == 0 {
			remove(name)
			sweep(name)
		}
	}
}

// alive names the files of other living processes that hold the key, and says
// whether one of them waits for the answer to it.
func (l *left) alive(key Key) (alive []string, unanswered bool) {
	for _, name := range l.names() {
		if l.files[name] != nil || l.tolerated[name] {
			continue
		}
		text, err := readText(name)
		if err != nil || !bytes.Contains(text, []byte(key)) {
			continue
		}
		alive = append(alive, name)
		noted, _ := readEntries(text)
		for _, r := range noted {
			unanswered = unanswered || r.Key == key && r.JobID == ""
		}
	}
	return alive, unanswered
}

// names are the files in the folder but our own, without suffix.
func (l *left) names() []string {
	files, err := os.ReadDir(l.journal.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.journal.failed(err)
	}
	l.journal.mu.Lock()
	defer l.journal.mu.Unlock()
	var names []string
	for _, file := range files {
		base, ok := strings.CutSuffix(file.Name(), fileSuffix)
		name := filepath.Join(l.journal.dir, base)
		if own := l.journal.lock; ok && file.Type().IsRegular() && (own == nil || name+lockSuffix != own.Path()) {
			names = append(names, name)
		}
	}
	return names
}

func readFile(name string) (*leftFile, error) {
	f := &leftFile{name: name}
	text, err := readText(name)
	if err != nil {
		return f, err
	}
	var damaged int
	f.size = int64(len(text))
	f.left, damaged = readEntries(text)
	for _, r := range f.left {
		r.file = f
	}
	if damaged > 0 {
		err = fmt.Errorf("%s: %d lines are damaged and passed over", name+fileSuffix, damaged)
	}
	return f, err
}

// readText returns nothing for a file that its owner has just removed.
func readText(name string) ([]byte, error) {
	file, err := os.Open(name + fileSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s: %w", file.Name(), errTooLong)
	}
	return io.ReadAll(io.LimitReader(file, maxFile))
}

// readEntries returns the requests that are not settled, by their number, and
// how many lines are damaged, as a crash or a full disk leaves them.
func readEntries(text []byte) (found map[int]*Left, damaged int) {
	found = map[int]*Left{}
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		var e entry
		switch err := json.Unmarshal(line, &e); {
		case err != nil || e.Number <= 0 || !e.Gone && e.Key == "":
			damaged++
		case e.Gone:
			delete(found, e.Number)
		default:
			found[e.Number] = &Left{JobID: e.JobID, At: e.at(), Key: e.Key, number: e.Number}
		}
	}
	return found, damaged
}

// refresh drops what other processes have settled since the file was read.
func (f *leftFile) refresh() error {
	info, err := os.Stat(f.name + fileSuffix)
	if err == nil && info.Size() == f.size {
		return nil
	}
	now, err := readFile(f.name)
	if now.left == nil && err != nil {
		return err
	}
	f.size = now.size
	for number := range f.left {
		if now.left[number] == nil {
			delete(f.left, number)
		}
	}
	return nil
}

// settle writes down that the requests are settled, and removes the file after
// its last one.
func (f *leftFile) settle(settled []*Left, sync bool) error {
	err := f.refresh()
	for _, r := range settled {
		delete(f.left, r.number)
	}
	if len(f.left) == 0 && err == nil {
		remove(f.name)
		sweep(f.name)
		return nil
	}
	lines := []byte{'\n'} // the crash may have cut the last line
	for _, r := range settled {
		line, err := json.Marshal(entry{Number: r.number, Gone: true})
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	return errors.Join(err, f.append(lines, sync))
}

func (f *leftFile) append(lines []byte, sync bool) error {
	file, err := os.OpenFile(f.name+fileSuffix, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	written, err := file.Write(lines)
	f.size += int64(written)
	if err == nil && sync {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// remove deletes a journal's requests; whoever has the file open sees none.
func remove(name string) {
	_ = os.Truncate(name+fileSuffix, 0)
	_ = os.Remove(name + fileSuffix)
}

// sweep deletes the locks of a journal that is removed, and the folder when it is empty.
func sweep(name string) {
	if _, err := os.Stat(name + fileSuffix); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	_ = os.Remove(name + lockSuffix)
	dir := filepath.Dir(name)
	files, _ := os.ReadDir(dir)
	for _, file := range files {
		if claim := file.Name(); strings.HasPrefix(claim, filepath.Base(name)+"-") && strings.HasSuffix(claim, lockSuffix) {
			_ = os.Remove(filepath.Join(dir, claim))
		}
	}
	_ = os.Remove(dir)
}
