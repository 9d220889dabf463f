// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecordThatEchoesTheKey(t *testing.T) {
	record := func(key string) *Job {
		return &Job{
			ID: "job_1", Status: Status("a" + key), Model: &key, PRLink: &key, CreatedAt: &key, ArchivedAt: &key,
			Source: &Source{Repository: &key, Ref: &key},
		}
	}
	const key = "mint_canary-scrub"
	job := record(key)
	NewKey(key).scrub(job)
	shown := fmt.Sprint(job.Status, *job.Model, *job.PRLink, *job.CreatedAt, *job.ArchivedAt, *job.Source.Repository, *job.Source.Ref)
	if strings.Contains(shown, key) {
		t.Errorf("the key is in the record: %s", shown)
	}

	short := record("agent")
	NewKey("agent").scrub(short)
	if diff := cmp.Diff(record("agent"), short); diff != "" {
		t.Errorf("a short key has changed the record (-want +got):\n%s", diff)
	}
	NewKey(key).scrub(&Job{ID: "job_1"}) // nothing but an id
}
