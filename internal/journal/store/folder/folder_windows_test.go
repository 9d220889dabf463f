// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package folder

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/windows"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// A virus scanner has a text, or the folder, open for a while.
func TestFolder_shared(t *testing.T) {
	for what, test := range map[string]struct {
		hasFolder bool // rather than the text
		use       func(*testing.T, store.Store) error
	}{
		"list": {true, func(t *testing.T, s store.Store) error { _, err := s.List(t.Context()); return err }},
		"read": {false, func(t *testing.T, s store.Store) error { _, err := s.Get(t.Context(), "a"); return err }},
		"write": {true, func(t *testing.T, s store.Store) error {
			_, err := s.Put(t.Context(), store.Text{Key: "a", Version: "1"}, []byte("{}"))
			return err
		}},
	} {
		s, _ := openFolder(t)
		storetest.Write(t, s, storetest.New("a"), "{}")
		held := s.Name("a")
		if !test.hasFolder {
			held = filepath.Join(held, "1"+store.Suffix)
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
