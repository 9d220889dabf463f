// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package demo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadState(t *testing.T) {
	const instance = `{"schema_version":0,"attributes":{"id":"job_1","status":"active"}}`
	tests := map[string]struct {
		file string // empty: there is none
		want jobState
		fail bool
	}{
		"no file":     {},
		"no resource": {file: `{"version":4,"resources":[]}`},
		"a job":       {file: `{"resources":[{"instances":[` + instance + `]}]}`, want: jobState{id: "job_1", status: "active"}},
		"tainted": {
			file: `{"resources":[{"instances":[{"status":"tainted","attributes":{"id":"job_1","status":"active"}}]}]}`,
			want: jobState{id: "job_1", status: "active", tainted: true},
		},
		"two jobs": {file: `{"resources":[{"instances":[` + instance + `,` + instance + `]}]}`, fail: true},
		"no JSON":  {file: `{`, fail: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if test.file != "" {
				writeFile(t, filepath.Join(dir, "terraform.tfstate"), test.file)
			}
			got, err := readState(dir)
			if (err != nil) != test.fail || got != test.want {
				t.Errorf("got %+v, %v, want %+v and an error: %t", got, err, test.want, test.fail)
			}
		})
	}
}

func TestFilesWith(t *testing.T) {
	dir := t.TempDir()
	hit := filepath.Join(dir, "deep", "state")
	writeFile(t, hit, "… the key …")
	writeFile(t, filepath.Join(dir, "other"), "nothing")
	got, err := filesWith(dir, "the key")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{hit}, got); diff != "" {
		t.Error(diff)
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
