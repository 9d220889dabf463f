// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package place

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// Only the store's own words say that there is nothing.
func TestS3_responses(t *testing.T) {
	f := fakes3.New(t)
	s := open(t, inBucket(t, f.URL).at)
	for _, status := range []int{http.StatusNotFound, http.StatusForbidden} { // without a body, or about another thing
		f.SetHook(func(*http.Request, func()) int { return status })
		for op, err := range storetest.Ops(t, s, "a") {
			if err == nil || errors.Is(err, store.ErrConflict) {
				t.Errorf("%d: %s: %v", status, op, err)
			}
		}
	}
	f.SetHook(func(*http.Request, func()) int { return http.StatusOK })
	for op, err := range storetest.Ops(t, s, "a") {
		if err == nil {
			t.Errorf("a proxy's empty response is good enough for %s", op)
		}
	}
}

// A listing that another server may have sent, or that lacks what follows, says nothing.
func TestBucket_foreignListings(t *testing.T) {
	fakes3.New(t) // nothing else of AWS remains
	t.Setenv("ARM_SAS_TOKEN", "sig=canary")
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("followed to %s with %v", r.URL, r.Header)
		if r.URL.Path == "/s3" {
			fmt.Fprint(w, "<ListBucketResult><Name>bucket</Name></ListBucketResult>")
		} else {
			fmt.Fprint(w, "<EnumerationResults><Blobs></Blobs></EnumerationResults>")
		}
	}))
	defer foreign.Close()
	there := strings.Replace(foreign.URL, "127.0.0.1", "localhost", 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/cut"):
			fmt.Fprint(w, `<ListBucketResult><Name>cut</Name><IsTruncated>true</IsTruncated></ListBucketResult>`)
		case strings.HasPrefix(r.URL.Path, "/bucket"):
			http.Redirect(w, r, there+"/s3", http.StatusTemporaryRedirect)
		default:
			http.Redirect(w, r, there, http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	for _, url := range []string{"s3://bucket?region=r&endpoint=", "s3://cut?region=r&endpoint=", "azblob://account/container?endpoint="} {
		l, err := ParseURL(url + server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if names, err := l.Open("scope", new(cli.Process)).List(t.Context()); err == nil {
			t.Errorf("%s: %v", url, names)
		}
	}
}

// A listing whose pages follow each other in a circle has an end, and says nothing.
func TestBucket_endlessListings(t *testing.T) {
	fakes3.New(t)
	t.Setenv("ARM_SAS_TOKEN", "sig=a")
	t.Setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "a")
	for url, page := range map[string]string{
		"s3://bucket?region=r&endpoint=":       `<ListBucketResult><Name>bucket</Name><IsTruncated>true</IsTruncated><NextContinuationToken>%d</NextContinuationToken></ListBucketResult>`,
		"azblob://account/container?endpoint=": `<EnumerationResults><Blobs></Blobs><NextMarker>%d</NextMarker></EnumerationResults>`,
		"gs://bucket?endpoint=":                `{"kind": "storage#objects", "nextPageToken": "%d"}`,
	} {
		var requests atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, page, requests.Add(1)%2) }))
		l, err := ParseURL(url + server.URL)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), storetest.Limit)
		names, err := l.Open("scope", new(cli.Process)).List(ctx)
		if err == nil || requests.Load() != 3 {
			t.Errorf("%s: %v, %v after %d requests", url, names, err, requests.Load())
		}
		cancel()
		server.Close()
	}
}

// The policies of the pipelines guide: each role does what it must, beside its own state only.
func TestS3_policy(t *testing.T) {
	for variable, allow := range map[string]func(*testing.T, string, string) Location{
		"AGENT_TEST_S3": allowRole, "AGENT_TEST_S3_SECOND": allowUser,
	} {
		text := os.Getenv(variable)
		for _, test := range []struct{ file, key, allowed string }{
			{"plan.json", "agent/terraform.tfstate", "list read"},
			{"plan.json", "other/terraform.tfstate", "list"},
			{"apply.json", "agent/terraform.tfstate", "list prove read write"},
			{"apply.json", "other/terraform.tfstate", "list"},
		} {
			t.Run(variable+" "+test.file+" "+test.key, func(t *testing.T) {
				if text == "" {
					t.Skipf("%s is not set: make test-stores sets it", variable)
				}
				l, err := ParseURL(text)
				if err != nil {
					t.Fatal(err)
				}
				policy, err := os.ReadFile("../../../examples/guides/pipelines/bucket/" + test.file)
				if err != nil {
					t.Fatal(err)
				}
				l = allow(t, text, strings.ReplaceAll(string(policy), "s3:::ci-state", "s3:::"+strings.TrimPrefix(l.cloud.String(), "s3://")))
				l.Prefix = test.key + "." + settings.Beside
				var allowed []string
				for op, err := range storetest.Ops(t, l.Open("scope", new(cli.Process)), "a") {
					if err == nil {
						allowed = append(allowed, op)
					}
				}
				slices.Sort(allowed)
				if got := strings.Join(allowed, " "); got != test.allowed {
					t.Errorf("allowed: %s, want %s", got, test.allowed)
				}
			})
		}
	}
}
