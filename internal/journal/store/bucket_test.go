// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

func openFakeBucket(t *testing.T) (*fakes3.Server, Store) {
	t.Helper()
	f := fakes3.New(t)
	l, err := ParseURL(f.URL)
	if err != nil {
		t.Fatal(err)
	}
	return f, open(t, l)
}

// Foreign objects are left alone. A listing has all pages, and only the names of its scope
// that start with the prefix.
func TestS3_list(t *testing.T) {
	f, s := openFakeBucket(t)
	var want []Name
	key := CreateKey("p", "a", "")
	for range 50 {
		want = append(want, NewName(key, "run1"))
	}
	for _, name := range append(want, NewName(CreateKey("p", "b", ""), "run1")) {
		if err := s.Write(t.Context(), name, &Entry{}); err != nil {
			t.Fatal(err)
		}
	}
	f.Lock()
	for _, name := range []string{"scope/state.json", "scope/deeper/" + want[0].String() + suffix, "other/" + want[0].String() + suffix} {
		f.Objects["a/prefix/"+name] = []byte("{}")
	}
	f.Unlock()
	got, err := s.List(t.Context(), string(key)+"-")
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b Name) bool { return a.ID < b.ID })); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if names, err := s.List(t.Context(), ""); err == nil {
		t.Errorf("what may be an entry of a later version is ignored: %v", names)
	}
}

// Only a store that has the bucket can say that an entry does not exist.
//
// Red without: isMissing in Read and in Remove, each of its conditions.
func TestS3_responses(t *testing.T) {
	f, s := openFakeBucket(t)
	l, err := ParseURL(strings.Replace(f.URL, "//bucket/", "//other/", 1))
	if err != nil {
		t.Fatal(err)
	}
	name := NewName(CreateKey("p", "a", ""), "run1")
	for what, test := range map[string]struct {
		store   Store
		status  int // without a body; 0: as the server responds
		missing bool
	}{
		"no entry":            {s, 0, true},
		"no bucket":           {open(t, l), 0, false},
		"404 of another kind": {s, http.StatusNotFound, false},
		"403":                 {s, http.StatusForbidden, false},
	} {
		f.SetHook(func(*http.Request, func()) int { return test.status })
		e, readErr := test.store.Read(t.Context(), name)
		removeErr := test.store.Remove(t.Context(), name)
		if e != nil || (readErr == nil) != test.missing || (removeErr == nil) != test.missing {
			t.Errorf("%s: %v, %v, %v", what, e, readErr, removeErr)
		}
		if _, err := test.store.List(t.Context(), ""); (err == nil) != test.missing {
			t.Errorf("%s: listed: %v", what, err)
		}
	}
	f.SetHook(func(*http.Request, func()) int { return http.StatusOK })
	if _, err := s.List(t.Context(), ""); err == nil {
		t.Error("a proxy's empty response is an empty listing")
	}
}

// The policies of the pipelines guide: each role does what it must, beside its own state only.
func TestS3_policy(t *testing.T) {
	url := os.Getenv("AGENT_TEST_S3")
	if url == "" {
		t.Skip("AGENT_TEST_S3 is not set: make test-s3 runs this with a real S3 server")
	}
	l, err := ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	at, _ := l.cloud.(*s3Bucket)
	server, err := at.aws.config(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	name := NewName(CreateKey("p", "a", ""), "run1")
	for _, test := range []struct{ file, key, allowed string }{
		{"plan.json", "agent/terraform.tfstate", "list read"},
		{"plan.json", "other/terraform.tfstate", "list"},
		{"apply.json", "agent/terraform.tfstate", "list write read remove"},
		{"apply.json", "other/terraform.tfstate", "list"},
	} {
		t.Run(test.file+" "+test.key, func(t *testing.T) {
			policy, err := os.ReadFile("../../../examples/guides/pipelines/bucket/" + test.file)
			if err != nil {
				t.Fatal(err)
			}
			role, err := sts.NewFromConfig(server, func(o *sts.Options) { o.BaseEndpoint = &at.endpoint }).AssumeRole(t.Context(), &sts.AssumeRoleInput{
				RoleArn: aws.String("arn:aws:iam::123456789012:role/agent"), RoleSessionName: aws.String("test"),
				Policy: aws.String(strings.ReplaceAll(string(policy), "ci-state", at.name)),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("AWS_ACCESS_KEY_ID", *role.Credentials.AccessKeyId)
			t.Setenv("AWS_SECRET_ACCESS_KEY", *role.Credentials.SecretAccessKey)
			t.Setenv("AWS_SESSION_TOKEN", *role.Credentials.SessionToken)
			l := l
			l.Prefix = test.key + "." + besideState
			s := open(t, l)
			var allowed []string
			_, listErr := s.List(t.Context(), "")
			writeErr := s.Write(t.Context(), name, &Entry{})
			_, readErr := s.Read(t.Context(), name) // there may be none
			for _, call := range []struct {
				name string
				err  error
			}{{"list", listErr}, {"write", writeErr}, {"read", readErr}, {"remove", s.Remove(t.Context(), name)}} {
				if call.err == nil {
					allowed = append(allowed, call.name)
				} else if !strings.Contains(call.err.Error(), "the credentials lack") {
					t.Error(call.err)
				}
			}
			if got := strings.Join(allowed, " "); got != test.allowed {
				t.Errorf("allowed: %s, want %s", got, test.allowed)
			}
		})
	}
}
