// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package place

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// A store that ignores a condition is not used. Nor is one that does not accept the version which it, or a proxy, has named: it could not
// record what is sent.
//
// Red without: proveChange, and each of its comparisons.
func TestBucket_versions(t *testing.T) {
	for _, ignored := range []string{"If-None-Match", "If-Match"} {
		f := fakes3.New(t)
		f.IgnoreIfNoneMatch, f.IgnoreIfMatch = ignored == "If-None-Match", ignored == "If-Match"
		if err := parse(t, f.URL).Open("scope", new(cli.Process)).Prove(t.Context()); err == nil || !strings.Contains(err.Error(), "("+ignored+")") {
			t.Errorf("%s is ignored: %v", ignored, err)
		}
	}
	f := fakes3.New(t)
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
			s := parse(t, f.URL).Open(name, &cli.Process{Network: storetest.Network(func(r *http.Request) (*http.Response, error) {
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
	}
}

// The policies of the pipelines guide: each role does what it must, beside its own state only.
func TestS3_policy(t *testing.T) {
	text := os.Getenv("AGENT_TEST_S3")
	if text == "" {
		t.Skip("AGENT_TEST_S3 is not set: make test-stores sets it")
	}
	for _, test := range []struct{ file, key, allowed string }{
		{"plan.json", "agent/terraform.tfstate", "list read"},
		{"plan.json", "other/terraform.tfstate", "list"},
		{"apply.json", "agent/terraform.tfstate", "list prove read write"},
		{"apply.json", "other/terraform.tfstate", "list"},
	} {
		policy, err := os.ReadFile("../../../examples/guides/pipelines/bucket/" + test.file)
		if err != nil {
			t.Fatal(err)
		}
		bucket := strings.TrimPrefix(parse(t, text).cloud.String(), "s3://")
		l := allowRole(t, text, strings.ReplaceAll(string(policy), "s3:::ci-state", "s3:::"+bucket))
		l.Prefix = test.key + "." + settings.JournalName
		var allowed []string
		for op, err := range storetest.Ops(t, l.Open("scope", new(cli.Process)), "a") {
			if err == nil {
				allowed = append(allowed, op)
			}
		}
		slices.Sort(allowed)
		if got := strings.Join(allowed, " "); got != test.allowed {
			t.Errorf("%s at %s allows %s, want %s", test.file, test.key, got, test.allowed)
		}
	}
}
