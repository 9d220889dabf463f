// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	sent     = `{"n":1,"k":"create-1","at":1}` + "\n"
	answered = `{"n":1,"k":"create-1","id":"job_1","at":2}` + "\n"
	second   = `{"n":2,"k":"create-1","id":"job_2","at":3}` + "\n"
	third    = `{"n":3,"k":"create-1","id":"job_3","at":4}` + "\n"
	gone     = "\n" + `{"n":1,"gone":true}` + "\n"
)

// A damaged file costs one report; what can be read of it counts.
func TestX05_damaged_file(t *testing.T) {
	tests := []struct {
		name    string
		text    string
		want    []string
		reports int
	}{
		{"whole", sent + answered + second, []string{"job_1", "job_2"}, 0},
		{"empty", "", nil, 0},
		{"blank lines", "\n\r\n \n" + answered + "\n", []string{"job_1"}, 0},
		{"no newline at the end", strings.TrimSuffix(answered, "\n"), []string{"job_1"}, 0},
		{"cut answer", sent + answered[:30], []string{"intent"}, 1},
		{"cut line at the end", second + third + answered[:30], []string{"job_2", "job_3"}, 1},
		{"cut line, then settled", second + answered[:30] + gone, []string{"job_2"}, 1},
		{"cut line in the middle", answered[:30] + "\n" + second, []string{"job_2"}, 1},
		{"two damaged lines", "{\n" + answered + "x\n", []string{"job_1"}, 1},
		{"binary", "\x00\xff\xfe\x01\x80" + "\n\x00", nil, 1},
		{"zeros after a power failure", sent + strings.Repeat("\x00", 200_000) + gone + second, []string{"job_2"}, 1},
		{"huge line", sent + strings.Repeat("a", 3<<20) + gone + second, []string{"job_2"}, 1},
		{"huge number", `{"n":1e99,"k":"create-1"}` + "\n" + second, []string{"job_2"}, 1},
		{"negative number", `{"n":-1,"k":"create-1"}` + "\n" + second, []string{"job_2"}, 1},
		{"neither request nor settled", answered + `{"n":1}` + "\n", []string{"job_1"}, 1},
		{"other JSON", "[]\n\"a\"\n{}\n" + second, []string{"job_2"}, 1},
		{"null", "null\n" + second, []string{"job_2"}, 1},
		{"unknown members", `{"n":2,"k":"create-1","id":"job_2","v":2}` + "\n", []string{"job_2"}, 0},
		{"settled", sent + answered + gone, nil, 0},
		{"settled, unknown number", `{"n":7,"gone":true}` + "\n" + second, []string{"job_2"}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t)
			write(t, dir, test.text)
			r := new(reports)
			j := Open(dir, r.add)
			for range 3 { // what was taken is given back twice
				var taken []*Left
				var got []string
				for {
					l, id := take(t, j, key)
					if l == nil {
						break
					}
					taken, got = append(taken, l), append(got, id)
				}
				if !cmp.Equal(got, test.want) {
					t.Fatalf("took %q, want %q", got, test.want)
				}
				for _, l := range taken {
					j.Return(l)
				}
			}
			worksOn(t, j, dir, test.reports, r)
			for left := len(test.want); left > 0; {
				l, _ := take(t, j, key)
				j.Settle(l)
				left--
				next := Open(dir, func(error) {})
				if got := takeAll(t, next, key); len(got) != left {
					t.Errorf("the next process takes %q, want %d", got, left)
				}
				crash(t, next)
			}
			wantFiles(t, dir, 0)
		})
	}
}

// worksOn checks that the journal notes calls and ends as ever.
func worksOn(t *testing.T, j *Journal, dir string, want int, r *reports) {
	t.Helper()
	note(j, "create-9", "", "job_9")
	next := openQuiet(t, dir)
	next.journalsOf(t, "create-9", 1)
	for call := range j.calls {
		(&Call{journal: j, number: call, ctx: t.Context()}).End()
	}
	j.Close()
	next.journalsOf(t, "create-9", 0)
	if len(r.errs) != want {
		t.Errorf("%d reports, want %d: %v", len(r.errs), want, r.errs)
	}
}

// journalsOf checks how many living processes hold the key.
func (j *Journal) journalsOf(t *testing.T, key Key, want int) {
	t.Helper()
	if got, _ := j.left.alive(key); len(got) != want {
		t.Errorf("%s is noted in %q, want %d", key, got, want)
	}
}

// A file that is too long is neither read nor removed.
func TestX05_file_too_long(t *testing.T) {
	dir := folder(t)
	path := write(t, dir, answered)
	if err := os.Truncate(path, maxFile+1); err != nil {
		t.Fatal(err)
	}
	r := new(reports)
	j := Open(dir, r.add)
	if _, id := take(t, j, key); id != "nothing" || j.HasLeft() {
		t.Errorf("took %s", id)
	}
	worksOn(t, j, dir, 1, r)
	wantFiles(t, dir, 1)
}

// What is no file of ours is left alone.
func TestX05_other_things_in_the_folder(t *testing.T) {
	dir := folder(t)
	for _, name := range []string{"folder" + fileSuffix, "folder" + lockSuffix} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// Their names begin like those of a journal's locks, or end so.
	for _, name := range []string{"note.txt", "dead-1.txt", "deader" + lockSuffix} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(answered), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, sent+gone) // goes as soon as it is read
	r := new(reports)
	j := Open(dir, r.add)
	if _, id := take(t, j, key); id != "nothing" {
		t.Errorf("took %s", id)
	}
	worksOn(t, j, dir, 0, r)
	if files, err := os.ReadDir(dir); len(files) != 5 {
		t.Errorf("%d files are left, %v", len(files), err)
	}
}

// Where no folder can be made: one report, and everything else goes on.
func TestX05_no_folder(t *testing.T) {
	for name, under := range map[string]string{"a file": "agent", "below a file": filepath.Join("agent", "deep")} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			if err := os.WriteFile(filepath.Join(base, "agent"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			unusable(t, filepath.Join(base, under))
		})
	}
}

// unusable uses a journal in a folder that cannot be used, and wants one report.
func unusable(t *testing.T, dir string) {
	t.Helper()
	r := new(reports)
	j := Open(dir, r.add)
	for range 3 {
		call := note(j, key, "", "withdrawn", "", "job_1")
		if _, id := take(t, j, key); id != "nothing" || j.HasLeft() {
			t.Errorf("took %s", id)
		}
		j.Seen("job_1", key)
		call.End()
	}
	j.Drain(t.Context())
	j.Close()
	if len(r.errs) != 1 {
		t.Errorf("%d reports: %v", len(r.errs), r.errs)
	}
}

// The folder is the user's: its name is no pattern. Red with filepath.Glob.
func TestFolder_named_like_a_pattern(t *testing.T) {
	for _, name := range []string{"app[1]", "app[", "*?", `a\b`, "ünï cødé"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name, "agent")
			crashed(t, dir, "", "job_1")
			j := openQuiet(t, dir)
			r, id := take(t, j, key)
			if id != "job_1" {
				t.Fatalf("took %s", id)
			}
			j.Settle(r)
			wantFiles(t, dir, 0)
		})
	}
}
