// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/windows"
)

// A virus scanner has an entry, or the folder, open for a while.
func TestFolder_shared(t *testing.T) {
	name := NewName(CreateKey("p", "a", ""), "run1")
	for what, test := range map[string]struct {
		hasFolder bool // rather than the entry
		use       func(*testing.T, Store) error
	}{
		"list":   {true, func(t *testing.T, s Store) error { _, err := s.List(t.Context(), ""); return err }},
		"read":   {false, func(t *testing.T, s Store) error { _, err := s.Read(t.Context(), name); return err }},
		"write":  {false, func(t *testing.T, s Store) error { return s.Write(t.Context(), name, &Entry{}) }},
		"remove": {false, func(t *testing.T, s Store) error { return s.Remove(t.Context(), name) }},
	} {
		s, held := openFolder(t)
		if err := s.Write(t.Context(), name, &Entry{}); err != nil {
			t.Fatal(err)
		}
		if !test.hasFolder {
			held = s.Where(name)
		}
		synctest.Test(t, func(t *testing.T) {
			path, err := windows.UTF16PtrFromString(held)
			if err != nil {
				t.Fatal(err)
			}
			handle, err := windows.CreateFile(path, windows.GENERIC_READ, 0, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(time.Second, func() { _ = windows.CloseHandle(handle) })
			start := time.Now()
			if err := test.use(t, s); err != nil || time.Since(start) < time.Second {
				t.Errorf("%s: %v after %s", what, err, time.Since(start))
			}
		})
	}
}
