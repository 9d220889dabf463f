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

// network is a way to a store, with a proxy perhaps.
type network func(*http.Request) (*http.Response, error)

func (n network) RoundTrip(r *http.Request) (*http.Response, error) { return n(r) }

// A store that does not accept the version which it, or a proxy, has named could not record what is sent: it is not used.
//
// Red without: proveChange, and each of its comparisons.
func TestBucket_versions(t *testing.T) {
	f := fakes3.New(t)
	l, err := ParseURL(f.URL)
	if err != nil {
		t.Fatal(err)
	}
	zip := func(etag string) string { return strings.TrimSuffix(etag, `"`) + `-gzip"` }
	for name, test := range map[string]struct {
		of       string // the method whose responses are changed; empty: all
		response func(etag string) string
		request  func(etag string) string
		works    bool
	}{
		"as they are":     {works: true},
		"zipped":          {of: http.MethodGet, response: zip},
		"weak":            {response: func(etag string) string { return "W/" + etag }},
		"another, stored": {of: http.MethodPut, response: zip},
		"never accepted":  {request: zip},
		"put right again": {response: zip, request: func(etag string) string { return strings.Replace(etag, "-gzip", "", 1) }, works: true},
	} {
		for range 2 { // a new scope, and one that has been proved
			s := l.Open("scope", &cli.Process{Network: network(func(r *http.Request) (*http.Response, error) {
				if match := r.Header.Get("If-Match"); match != "" && test.request != nil {
					r = r.Clone(r.Context())
					r.Header.Set("If-Match", test.request(match))
				}
				response, err := http.DefaultTransport.RoundTrip(r)
				if err == nil && test.response != nil && (test.of == "" || test.of == r.Method) {
					response.Header.Set("ETag", test.response(response.Header.Get("ETag")))
				}
				return response, err
			})})
			if err := s.Prove(t.Context()); (err == nil) != test.works {
				t.Errorf("%s: %v", name, err)
			}
		}
		f.Clear()
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
				l.Prefix = test.key + "." + settings.JournalName
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
