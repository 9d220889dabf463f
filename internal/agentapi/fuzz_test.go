// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzDecodeJob(f *testing.F) {
	for _, seed := range []string{
		record, "", "null", "[]", `{"id":"a","id":"b"}`, `{"id":"a"}x`, `{"id":"a/b"}`, `{"id":"a","source":{"ref":null}}`,
		`{"id":"a",}`, `{"id":1}`, `{"id":"a","x":{"x":[1,{}]}}`, "{\"id\":\"\xff\"}", `{"id":"\ud800"}`, `{"id":"a" }`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		job, err := decodeJob(data)
		if (job == nil) == (err == nil) {
			t.Fatalf("decodeJob(%q) = %v, %v", data, job, err)
		}
		if err != nil {
			return
		}
		if !ValidID(job.ID) {
			t.Errorf("decodeJob(%q) accepts the id %q", data, job.ID)
		}
		// encoding/json, which takes the last of two, agrees with what was accepted.
		var fields map[string]any
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatalf("decodeJob accepts %q, encoding/json does not: %v", data, err)
		}
		text := func(object map[string]any, name string) *string {
			if s, ok := object[name].(string); ok {
				return &s
			}
			return nil
		}
		want := &Job{ID: *text(fields, "id"), Model: text(fields, "model"), PRLink: text(fields, "prLink"), CreatedAt: text(fields, "createdAt"), ArchivedAt: text(fields, "archivedAt")}
		if status := text(fields, "status"); status != nil {
			want.Status = Status(*status)
		}
		if job.Source != nil { // nil too when it has a name twice
			source, _ := fields["source"].(map[string]any)
			want.Source = &Source{Repository: text(source, "repository"), Ref: text(source, "ref")}
		}
		if diff := cmp.Diff(want, job); diff != "" {
			t.Errorf("decodeJob(%q) (-want +got):\n%s", data, diff)
		}
	})
}
