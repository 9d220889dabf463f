// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecordThatEchoesTheKey(t *testing.T) {
	t.Parallel()
	record := func(text string) *Job { // each field with a text of its own
		return &Job{
			ID: "job_1", Status: Status("a" + text), Model: new(text), PRLink: new(text), CreatedAt: new(text), ArchivedAt: new(text),
			Source: &Source{Repository: new(text), Ref: new(text)},
		}
	}
	for key, shown := range map[string]string{"mint_canary-scrub": masked, "8letters": masked, "7letter": "7letter"} {
		job := record(key)
		NewKey(key).scrub(job)
		if diff := cmp.Diff(record(shown), job); diff != "" {
			t.Errorf("the record with the key %s (-want +got):\n%s", key, diff)
		}
		NewKey(key).scrub(&Job{ID: "job_1"}) // nothing but an id
	}
}
