// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/place"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// A journal elsewhere leaves a pointer beside the state, also over an older one. It counts for those who have chosen no place, and is
// no record.
func TestPointer_N28(t *testing.T) {
	beside := Place{place.Location{Folder: t.TempDir(), Default: true}, "scope"}
	open := func(o Options) *Journal { return Open(new(cli.Process), o) }
	for _, folder := range []string{t.TempDir(), t.TempDir()} {
		named := open(Options{Place: Place{place.Location{Folder: folder, State: "a", URL: folder + "?state=a"}, "scope"}, Pointer: &beside})
		for range 2 {
			named.isProven = false
			if err := named.prove(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for isUsual, want := range map[bool]string{true: folder + "?state=a", false: ""} {
			j := open(Options{Place: beside, IsUsual: isUsual})
			moved := ""
			r, err := j.FindElsewhere(t.Context(), "p", "n", false)
			if err != nil {
				t.Error(err)
			}
			if r != nil {
				moved = r.MovedTo
			}
			if all, err := j.All(t.Context()); moved != want || len(all) > 0 || err != nil {
				t.Errorf("moved to %q, want %q; records: %v, %v", moved, want, all, err)
			}
		}
	}
}

// A store that errs once hides no pointer: nothing is sent then, and what is sent next reads it. A plan of many resources asks once.
func TestPointer_error(t *testing.T) {
	w := newWorld()
	w.kept[pointerKey] = kept{text: []byte(`{"place":"s3://there"}`)}
	j, c := w.open("1")
	j.IsUsual = true
	failing := true
	c.fault = func(string) fault { return map[bool]fault{true: lostRequest}[failing] }
	for range 2 {
		if moved, err := j.FindElsewhere(t.Context(), "p", "n", false); moved != nil || err == nil {
			t.Error(moved, err)
		}
	}
	failing = false
	for range 2 {
		if moved, err := j.FindElsewhere(t.Context(), "p", "n", true); moved == nil || err != nil {
			t.Error(moved, err)
		}
	}
	want(t, "accesses", c.took(), "list get get")
}

// reader is a store as credentials see it that lack rights.
type reader struct {
	store.Store

	listErr, readErr error
	listed           map[string]store.Listed
}

func (r reader) List(context.Context) (map[string]store.Listed, error) { return r.listed, r.listErr }
func (r reader) CanRead(context.Context) error                         { return r.readErr }

// A plan says that its apply would fail, but not of a role that has what it needs, or of what is said elsewhere.
func TestCheckRead_S07(t *testing.T) {
	denied, other := store.ErrDenied, errors.New("timeout")
	for _, row := range []struct {
		what  string
		store reader
		want  bool
	}{
		{"all rights", reader{}, false},
		{"list and read, nothing written so far", reader{readErr: nil}, false},
		{"the exact key of a state", reader{readErr: denied}, true},
		{"the exact key, and no listing", reader{listErr: denied, readErr: denied}, true},
		{"read and write, and no listing", reader{listErr: denied}, false},
		{"another run has written", reader{listed: map[string]store.Listed{"a": {}}, readErr: denied}, false},
		{"the store fails", reader{listErr: other, readErr: denied}, false},
		{"the read fails", reader{readErr: other}, false},
	} {
		row.store.Store = store.Discard()
		if err := over(row.store, new(cli.Process), Options{}).CheckRead(t.Context()); (err != nil) != row.want {
			t.Errorf("%s: %v", row.what, err)
		}
	}
}
