// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecordThatEchoesTheKey(t *testing.T) {
	t.Parallel()
	record := func(text string) *Job {
		job := new(Job)
		fillTexts(reflect.ValueOf(job).Elem(), text)
		job.ID = "job_1" // one that repeats the key is no job
		return job
	}
	for key, shown := range map[string]string{"mint_canary-scrub": masked, "8letters": masked, "7letter": "7letter"} {
		job := record(key)
		NewKey(key).scrub(job)
		if diff := cmp.Diff(record(shown), job); diff != "" {
			t.Errorf("the record with the key %s, does scrub know every field? (-want +got):\n%s", key, diff)
		}
		NewKey(key).scrub(&Job{ID: "job_1"}) // nothing but an id
	}
}

// fillTexts gives each field below v a text of its own that repeats text, also
// a field that was added later.
func fillTexts(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillTexts(v.Elem(), text)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fillTexts(field, text)
		}
	case reflect.String:
		v.SetString("a" + text)
	}
}
