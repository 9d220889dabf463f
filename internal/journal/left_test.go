// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTake(t *testing.T) {
	tests := []struct {
		name  string
		calls [][]string // of one process, which crashed
		want  []string
	}{
		{name: "answered", calls: [][]string{{"", "job_1"}}, want: []string{"job_1"}},
		{name: "not answered", calls: [][]string{{""}}, want: []string{"intent"}},
		{name: "withdrawn", calls: [][]string{{"", "withdrawn"}}},
		{name: "sent again after a refusal", calls: [][]string{{"", "withdrawn", ""}}, want: []string{"intent"}},
		{name: "answered after a refusal", calls: [][]string{{"", "withdrawn", "", "job_1"}}, want: []string{"job_1"}},
		{name: "adopted", calls: [][]string{{"job_1"}}, want: []string{"job_1"}},
		{name: "answered ones first", calls: [][]string{{""}, {"", "job_1"}, {""}, {"", "job_2"}}, want: []string{"job_1", "job_2", "intent", "intent"}},
		{name: "as many as there were", calls: [][]string{{"", "job_1"}, {"", "job_2"}, {"", "job_3"}}, want: []string{"job_1", "job_2", "job_3"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t)
			dead := openQuiet(t, dir)
			for _, steps := range test.calls {
				note(dead, key, steps...)
			}
			crash(t, dead)

			j := openQuiet(t, dir)
			if j.HasLeft() != (len(test.want) > 0) {
				t.Errorf("HasLeft is %t", !j.HasLeft())
			}
			if got := takeAll(t, j, otherKey); len(got) > 0 {
				t.Errorf("took %q under another key", got)
			}
			if got := takeAll(t, j, key); !cmp.Equal(got, test.want) {
				t.Errorf("took %q, want %q", got, test.want)
			}
			if j.HasLeft() {
				t.Error("something is left after everything was taken")
			}
			crash(t, j)
			want := 0 // a file without requests goes as soon as it is read
			if len(test.want) > 0 {
				want = 1
			}
			wantFiles(t, dir, want)
		})
	}
}

func TestTake_tells_when(t *testing.T) {
	dir := folder(t)
	before := time.Now().Truncate(time.Second)
	crashed(t, dir, "")
	j := openQuiet(t, dir)
	defer crash(t, j)
	if r := j.Take(t.Context(), key); r == nil || r.Key != key || r.At.Before(before) || r.At.After(time.Now()) {
		t.Errorf("took %+v", r)
	}
}

// Older files first, whatever their names: red without the order in Take.
func TestTake_oldest_first(t *testing.T) {
	dir := folder(t)
	for _, name := range []string{"c", "a", "b"} {
		at := map[string]string{"a": "3", "b": "1", "c": "2"}[name]
		path := write(t, dir, `{"n":1,"k":"create-1","id":"job_`+at+`","at":`+at+"}\n")
		rename(t, path, strings.Replace(path, "dead", name, 1))
	}
	j := openQuiet(t, dir)
	defer crash(t, j)
	if got := takeAll(t, j, key); !cmp.Equal(got, []string{"job_1", "job_2", "job_3"}) {
		t.Errorf("took %q", got)
	}
}

// One request goes to one caller, whether they are resources of one process
// or of several: red without taken, and without claim.
func TestTake_by_many_at_once(t *testing.T) {
	const requests, callers = 20, 50
	for name, journals := range map[string]int{"one process": 1, "three processes": 3} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			dead := openQuiet(t, dir)
			for i := range requests {
				note(dead, key, "", "job_"+string(rune('a'+i)))
			}
			crash(t, dead)
			var open []*Journal
			for range journals {
				open = append(open, openQuiet(t, dir))
				open[len(open)-1].HasLeft() // has read the file
			}
			var all sync.WaitGroup
			var mu sync.Mutex
			var got []string
			for i := range callers {
				all.Go(func() {
					j := open[i%journals]
					r := j.Take(t.Context(), key)
					if r == nil {
						return
					}
					mu.Lock()
					got = append(got, r.JobID)
					mu.Unlock()
					if i%2 == 0 {
						j.Settle(r)
					}
				})
			}
			all.Wait()
			slices.Sort(got)
			if unique := slices.Compact(slices.Clone(got)); len(got) != requests || len(unique) != requests {
				t.Errorf("taken: %q", got)
			}
			for _, j := range open {
				crash(t, j)
			}
		})
	}
}

func TestReturn(t *testing.T) {
	dir := folder(t)
	crashed(t, dir, "", "job_1")
	one, two := openQuiet(t, dir), openQuiet(t, dir)
	for range 3 {
		r, id := take(t, one, key)
		if id != "job_1" {
			t.Fatalf("took %s", id)
		}
		if _, id := take(t, two, key); id != "nothing" {
			t.Fatalf("took %s, which another process has", id)
		}
		one.Return(r)
	}
	if !one.HasLeft() {
		t.Error("nothing is left after it was given back")
	}
	r, id := take(t, two, key)
	if id != "job_1" {
		t.Fatalf("took %s, which was given back", id)
	}
	two.Settle(r)
	if err := os.Mkdir(dir, 0o700); err != nil { // as when another process has just left the folder
		t.Fatal(err)
	}
	if _, id := take(t, one, key); id != "nothing" {
		t.Errorf("took %s, which another process has settled", id)
	}
	wantFiles(t, dir, 0)
}

// Each process that follows finds one request less: red without the line that
// settle writes, and, at the end, without remove.
func TestSettle(t *testing.T) {
	dir := folder(t)
	dead := openQuiet(t, dir)
	note(dead, key, "", "job_1")
	note(dead, key, "")
	note(dead, key, "")
	note(dead, message, "", "job_2")
	crash(t, dead)
	for i, want := range []struct {
		key Key
		id  string
	}{{key, "job_1"}, {key, "intent"}, {key, "intent"}, {message, "job_2"}} {
		wantFiles(t, dir, 1)
		j := openQuiet(t, dir)
		r, id := take(t, j, want.key)
		if id != want.id {
			t.Fatalf("%d: took %s, want %s", i, id, want.id)
		}
		j.Settle(r)
		crash(t, j)
	}
	wantFiles(t, dir, 0)
	if openQuiet(t, dir).HasLeft() {
		t.Error("something is left")
	}
}

// Two processes settle half of a file each: red without refresh in settle.
func TestSettle_by_two_processes(t *testing.T) {
	dir := folder(t)
	dead := openQuiet(t, dir)
	note(dead, key, "", "job_1")
	note(dead, otherKey, "", "job_2")
	crash(t, dead)
	one, two := openQuiet(t, dir), openQuiet(t, dir)
	r1, _ := take(t, one, key)
	r2, _ := take(t, two, otherKey)
	one.Settle(r1)
	wantFiles(t, dir, 1)
	if _, id := take(t, two, key); id != "nothing" {
		t.Errorf("took %s, which another process has settled", id)
	}
	if claims, err := filepath.Glob(filepath.Join(dir, "*-*")); err != nil || len(claims) != 1 {
		t.Errorf("claims: %q, %v; want that of the request that is taken", claims, err)
	}
	two.Settle(r2)
	wantFiles(t, dir, 0)
}

// A damaged line does not hide what another process has settled: red without
// left in refresh.
func TestSettle_of_a_damaged_file(t *testing.T) {
	dir := folder(t)
	write(t, dir, answered+second+"{\n")
	one, two := Open(dir, func(error) {}), Open(dir, func(error) {})
	two.HasLeft() // has read the file
	r, _ := take(t, one, key)
	one.Settle(r)
	if r, id := take(t, two, key); id != "job_2" {
		t.Errorf("took %s, want job_2", id)
	} else {
		two.Settle(r)
	}
	wantFiles(t, dir, 0)
}

// A process noted the job that it adopted, and crashed before it settled it:
// two files name the job. Red without dealt, and without the answer in Settle.
func TestTake_of_a_job_that_two_files_name(t *testing.T) {
	dir := folder(t)
	crashed(t, dir, "", "job_1")
	between := openQuiet(t, dir)
	_, id := take(t, between, key)
	note(between, key, id)
	crash(t, between)
	wantFiles(t, dir, 2)

	j := openQuiet(t, dir)
	r, id := take(t, j, key)
	if again, id := take(t, j, key); id != "nothing" {
		t.Errorf("job %s is taken twice", again.JobID)
	}
	if id != "job_1" {
		t.Fatalf("took %s", id)
	}
	j.Return(r)
	if r, id = take(t, j, key); id != "job_1" {
		t.Fatalf("took %s after the return", id)
	}
	j.Settle(r)
	wantFiles(t, dir, 0)
}

func TestSeen(t *testing.T) {
	tests := []struct {
		name  string
		jobID string
		keys  []Key
		want  []string // of create, create under another key, message
	}{
		{"job", "job_1", nil, []string{"intent", "job_2", "job_1"}},
		{"key", "job_3", []Key{message}, []string{"job_1", "intent", "job_2"}},
		{"job and key", "job_1", []Key{message}, []string{"intent", "job_2"}},
		{"other", "job_3", []Key{"message-2"}, []string{"job_1", "intent", "job_2", "job_1"}},
		{"no id", "", nil, []string{"job_1", "intent", "job_2", "job_1"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t)
			dead := openQuiet(t, dir)
			note(dead, key, "", "job_1")
			note(dead, key, "")
			note(dead, otherKey, "", "job_2")
			note(dead, message, "", "job_1")
			crash(t, dead)

			first := openQuiet(t, dir)
			first.Seen(test.jobID, test.keys...)
			for _, j := range []*Journal{first, openQuiet(t, dir)} { // in this process and in the next
				got := slices.Concat(takeAll(t, j, key), takeAll(t, j, otherKey), takeAll(t, j, message))
				if !cmp.Equal(got, test.want) {
					t.Errorf("left: %q, want %q", got, test.want)
				}
				crash(t, j)
			}
		})
	}
}

// What a crashed process had taken leaves no file behind once it is settled.
func TestClaims_of_a_crashed_process(t *testing.T) {
	dir := folder(t)
	dead := openQuiet(t, dir)
	note(dead, key, "", "job_1")
	note(dead, key, "", "job_2")
	crash(t, dead)
	between := openQuiet(t, dir)
	if got := takeAll(t, between, key); len(got) != 2 {
		t.Fatalf("took %q", got)
	}
	crash(t, between)
	j := openQuiet(t, dir)
	r, id := take(t, j, key)
	if id != "job_1" {
		t.Fatalf("took %s", id)
	}
	j.Settle(r)
	j.Seen("job_2")
	wantFiles(t, dir, 0)
}

// While a job is being taken over, Read of the same job does not pull it away.
func TestSeen_leaves_what_is_taken(t *testing.T) {
	dir := folder(t)
	crashed(t, dir, "", "job_1")
	j := openQuiet(t, dir)
	r, _ := take(t, j, key)
	j.Seen("job_1", key)
	wantFiles(t, dir, 1)
	j.Settle(r)
	wantFiles(t, dir, 0)
}
