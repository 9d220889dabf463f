// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package place

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// place is where a store is tried.
type place struct {
	url         string                                              // of at, but for the prefix
	at, missing Location                                            // missing has no bucket, or no folder
	page        int                                                 // names in a page of a listing
	deny        func(t *testing.T, at Location, op string) Location // at without a right
	cannotDeny  string                                              // why there is no deny
	forget      func(t *testing.T, scope, key string)               // deletes what a key has, as only a person does
}

func places(t *testing.T, try func(t *testing.T, p place)) {
	t.Helper()
	t.Run("folder", func(t *testing.T) {
		dir := t.TempDir()
		folder := filepath.Join(dir, "app[1] [ünï")
		try(t, place{
			at: Location{Folder: folder, Default: true}, missing: Location{Folder: filepath.Join(dir, "missing")},
			cannotDeny: "the system's error says which file it denies, and root is denied nothing",
			forget: func(t *testing.T, scope, key string) {
				if err := os.RemoveAll(filepath.Join(folder, scope, key)); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
	t.Run("fake S3", func(t *testing.T) {
		f := fakes3.New(t)
		p := inBucket(t, f.URL)
		p.page = 20
		p.deny = func(t *testing.T, at Location, denied string) Location {
			t.Cleanup(func() { f.SetHook(nil) })
			f.SetHook(func(r *http.Request, _ func()) int {
				return map[bool]int{true: http.StatusForbidden}[fakes3.Op(r) == denied]
			})
			return at
		}
		p.forget = func(_ *testing.T, scope, key string) {
			f.Lock()
			defer f.Unlock()
			delete(f.Objects, p.at.Prefix+scope+"/"+key+store.Suffix)
		}
		try(t, p)
	})
	var unset []string
	for _, server := range []struct {
		name, variable string
		page           int
		allow          func(t *testing.T, at, policy string) Location
		cannotDeny     string
	}{
		{"S3 server", "AGENT_TEST_S3", 1000, allowRole, ""},
		{"second S3 server", "AGENT_TEST_S3_SECOND", 1000, allowUser, ""},
		{"Azure server", "AGENT_TEST_AZBLOB", 5000, nil, "an account key has every right"},
		{"Google", "AGENT_TEST_GS", 1000, nil, "rights are not made here"}, // a person's bucket: no server is like Google's
	} {
		text := os.Getenv(server.variable)
		if text == "" {
			unset = append(unset, server.variable)
			continue
		}
		t.Run(server.name, func(t *testing.T) {
			p := inBucket(t, text)
			p.page, p.cannotDeny, p.forget = server.page, server.cannotDeny, forgetting(text, p.at.Prefix)
			isS3 := strings.HasPrefix(text, "s3://")
			if isS3 && !strings.Contains(text, "=http://127.0.0.1:") { // chosen by a person
				p.cannotDeny = "buckets and rights are made only at a server on this machine"
			} else if isS3 {
				p.deny = denying(p, server.allow)
			}
			t.Run("bucket", func(t *testing.T) { try(t, p) })
			for _, isLocked := range []bool{false, true} {
				if p.deny == nil {
					break
				}
				t.Run(map[bool]string{false: "versioned bucket", true: "Object Lock and retention"}[isLocked], func(t *testing.T) {
					p := p
					p.url, p.page = versioned(t, p.url, isLocked), 0
					p.at, p.deny, p.forget = at(t, p.url, p.at.Prefix), denying(p, server.allow), forgetting(p.url, p.at.Prefix)
					if server.variable == "AGENT_TEST_S3_SECOND" { // versitygw 1.8 compares with the version that was deleted
						p.forget = nil
					}
					try(t, p)
				})
			}
		})
	}
	if unset != nil {
		t.Run("other servers", func(t *testing.T) { t.Skipf("%s not set: see make test-stores", strings.Join(unset, ", ")) })
	}
}

// inBucket is a place for one test, below a prefix that no other has.
func inBucket(t *testing.T, text string) (p place) {
	t.Helper()
	parsed, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p.url, p.at = text, at(t, text, storetest.NewKey()+"/"+storetest.OddPrefix)
	if parsed.Scheme == "azblob" {
		parsed.Path = "/agent-missing"
	} else {
		parsed.Host = "agent-missing"
	}
	if p.missing, err = ParseURL(parsed.String()); err != nil {
		t.Fatal(err)
	}
	return p
}

// at is the place of a URL, with another prefix.
func at(t *testing.T, text, prefix string) Location {
	t.Helper()
	l, err := ParseURL(text)
	if err != nil {
		t.Fatal(err)
	}
	l.Prefix = prefix
	return l
}

// denying returns what takes a right from the credentials, at the place that it gets.
func denying(p place, allow func(t *testing.T, at, policy string) Location) func(*testing.T, Location, string) Location {
	return func(t *testing.T, l Location, op string) Location {
		t.Helper()
		denied := allow(t, p.url, policyWithout(l, op))
		denied.Prefix = l.Prefix
		return denied
	}
}

// open opens the store of a scope.
func open(t *testing.T, l Location) store.Store {
	t.Helper()
	return l.Open("scope", new(cli.Process))
}

// client reaches the server of a URL without the code that is tested here, and names the bucket.
func client(t *testing.T, at string) (_ *s3.Client, bucket string) {
	t.Helper()
	parsed, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(parsed.Query().Get("region")))
	if err != nil {
		t.Fatal(err)
	}
	return s3.NewFromConfig(loaded, func(o *s3.Options) {
		o.BaseEndpoint, o.UsePathStyle = aws.String(parsed.Query().Get("endpoint")), true
	}), parsed.Host
}

// versioned makes a bucket that keeps versions, each for a day if it is locked.
func versioned(t *testing.T, at string, isLocked bool) (made string) {
	t.Helper()
	client, bucket := client(t, at)
	name := "agent-" + storetest.NewKey()
	_, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name, ObjectLockEnabledForBucket: &isLocked})
	if err == nil && isLocked {
		_, err = client.PutObjectLockConfiguration(t.Context(), &s3.PutObjectLockConfigurationInput{
			Bucket: &name, ObjectLockConfiguration: &types.ObjectLockConfiguration{
				ObjectLockEnabled: types.ObjectLockEnabledEnabled,
				Rule:              &types.ObjectLockRule{DefaultRetention: &types.DefaultRetention{Mode: types.ObjectLockRetentionModeCompliance, Days: aws.Int32(1)}},
			},
		})
	} else if err == nil {
		_, err = client.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
			Bucket: &name, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(at, bucket, name, 1)
}

// policyWithout allows all that the journal does at a place, but for one op. It is made of what errors say.
func policyWithout(l Location, denied string) string {
	var statements []string
	for _, op := range []string{"list", "read", "write"} {
		if op != denied {
			statements = append(statements, l.cloud.Grant(op, l.Prefix))
		}
	}
	if denied == "read" { // which the right to write has, too
		statements[1] = strings.Replace(statements[1], `"s3:GetObject", `, "", 1)
	}
	return `{"Version": "2012-10-17", "Statement": [` + strings.Join(statements, ",") + `]}`
}

// allowRole assumes a role that only has what a policy allows: MinIO has that.
func allowRole(t *testing.T, at, policy string) Location {
	t.Helper()
	parsed, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := parsed.Query().Get("endpoint")
	l := usual(backend{Type: "s3", Settings: map[string]any{
		"bucket": parsed.Host, "key": "k", "region": parsed.Query().Get("region"), "use_path_style": true,
		"endpoints":   map[string]any{"s3": endpoint, "sts": endpoint},
		"assume_role": map[string]any{"role_arn": "arn:aws:iam::123456789012:role/agent", "policy": policy},
	}})
	if l.Unusable != nil {
		t.Fatal(l.Unusable)
	}
	return l
}

// allowUser makes this test's credentials those of a user who has the same secret, and no more than the bucket's policy
// allows: versitygw cannot assume roles without a token.
func allowUser(t *testing.T, at, policy string) Location {
	t.Helper()
	policy = strings.ReplaceAll(policy, `"Effect"`, `"Principal": {"AWS": ["agent-user"]}, "Effect"`)
	client, bucket := client(t, at)
	if _, err := client.PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{Bucket: &bucket, Policy: &policy}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "agent-user")
	l, err := ParseURL(at)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// forgetting returns what deletes what a key has.
func forgetting(url, prefix string) func(t *testing.T, scope, key string) {
	if !strings.HasPrefix(url, "s3://") && !strings.HasPrefix(url, "azblob://") { // no test has a client for it
		return nil
	}
	return func(t *testing.T, scope, key string) {
		t.Helper()
		remove(t, url, prefix+scope+"/"+key+store.Suffix)
	}
}

// remove deletes an object: nothing but this test needs that.
func remove(t *testing.T, at, key string) {
	t.Helper()
	parsed, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	switch parsed.Scheme {
	case "s3":
		client, bucket := client(t, at)
		_, err = client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
	case "azblob":
		var shared *azblob.SharedKeyCredential
		if shared, err = azblob.NewSharedKeyCredential(parsed.Host, os.Getenv("ARM_ACCESS_KEY")); err != nil {
			break
		}
		var account *azblob.Client
		if account, err = azblob.NewClientWithSharedKeyCredential(parsed.Query().Get("endpoint"), shared, nil); err == nil {
			_, err = account.DeleteBlob(t.Context(), strings.Trim(parsed.Path, "/"), key, nil)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A store does all that the journal demands, at each place.
func TestStores(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		tried := storetest.Place{
			Cloud: p.at.cloud, Prefix: p.at.Prefix, Folder: p.at.Folder, Page: p.page, CannotDeny: p.cannotDeny, Forget: p.forget,
			Open: func(scope string, network http.RoundTripper) store.Store {
				return p.at.Open(scope, &cli.Process{Network: network})
			},
			Missing: open(t, p.missing),
		}
		if p.deny != nil {
			tried.Deny = func(t *testing.T, scope, op string) store.Store {
				t.Helper()
				return p.deny(t, p.at, op).Open(scope, new(cli.Process))
			}
		}
		storetest.Run(t, tried)
	})
}
