// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"os"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
)

// The policy of the pipelines guide allows what a journal does, and nothing beside its prefix.
func TestS3_policy(t *testing.T) {
	url := os.Getenv("AGENT_TEST_S3")
	if url == "" {
		t.Skip("AGENT_TEST_S3 is not set: make test-s3 runs this with a real S3 server")
	}
	policy, err := os.ReadFile("../../../examples/guides/pipelines/journal-policy.json")
	if err != nil {
		t.Fatal(err)
	}
	l, err := ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	role, err := credentials.NewSTSAssumeRole("http://"+l.Endpoint, credentials.STSAssumeRoleOptions{
		AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), Location: l.Region,
		Policy: strings.ReplaceAll(string(policy), "ci-state", l.Bucket),
	})
	if err != nil {
		t.Fatal(err)
	}
	assumed, err := role.GetWithContext(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", assumed.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", assumed.SecretAccessKey)
	t.Setenv("AWS_SESSION_TOKEN", assumed.SessionToken)
	name := NewName(CreateKey("p", "a", ""), "run1")
	for prefix, allowed := range map[string]bool{"agent-journal/": true, "terraform-state/": false} {
		l.Prefix = prefix
		s, err := Open(l, "scope", new(cli.Process))
		if err != nil {
			t.Fatal(err)
		}
		_, listErr := s.List(t.Context(), "")
		_, readErr := s.Read(t.Context(), name) // there is none
		for call, err := range map[string]error{
			"write": s.Write(t.Context(), name, &Entry{}), "read": readErr, "remove": s.Remove(t.Context(), name),
		} {
			if (err == nil) != allowed {
				t.Errorf("%s %s: allowed: %t: %v", call, prefix, allowed, err)
			}
		}
		if listErr != nil {
			t.Errorf("list %s: %v", prefix, listErr)
		}
	}
}
