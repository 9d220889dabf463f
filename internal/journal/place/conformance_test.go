// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package place

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// A store does all that the journal demands, at each place.
func TestStores(t *testing.T) {
	t.Run("folder", func(t *testing.T) {
		dir := t.TempDir()
		p := placeOf(Location{Folder: filepath.Join(dir, "app[1] [ünï"), Default: true}, Location{Folder: filepath.Join(dir, "missing")})
		p.CannotDeny = "the system's error says which file it denies, and root is denied nothing"
		p.Forget = func(t *testing.T, scope, key string) {
			if err := os.RemoveAll(filepath.Join(p.Folder, scope, key)); err != nil {
				t.Fatal(err)
			}
		}
		storetest.Run(t, p)
	})
	t.Run("fake S3", func(t *testing.T) {
		f := fakes3.New(t)
		p := inBucket(t, f.URL, newPrefix())
		p.Page = 20
		p.Deny = func(t *testing.T, scope, denied string) store.Store {
			t.Cleanup(func() { f.SetHook(nil) })
			f.SetHook(func(r *http.Request) int {
				return map[bool]int{true: http.StatusForbidden}[fakes3.Op(r) == denied]
			})
			return p.Open(scope, nil)
		}
		p.Forget = func(_ *testing.T, scope, key string) {
			f.Lock()
			defer f.Unlock()
			delete(f.Objects, p.Prefix+scope+"/"+key+store.Suffix)
		}
		storetest.Run(t, p)
	})
	var unset []string
	for _, server := range []struct {
		name, variable, cannotDeny string
		page                       int
	}{
		{"S3 server", "AGENT_TEST_S3", "buckets and rights are made only at a server on this machine", 1000},
		{"second S3 server", "AGENT_TEST_S3_SECOND", "the first server does", 1000},
		{"Azure server", "AGENT_TEST_AZBLOB", "an account key has every right", 5000},
		{"Google", "AGENT_TEST_GS", "rights are not made here", 1000}, // a person's bucket: no server is like Google's
	} {
		text := os.Getenv(server.variable)
		if text == "" {
			unset = append(unset, server.variable)
			continue
		}
		t.Run(server.name, func(t *testing.T) {
			p := inBucket(t, text, newPrefix())
			p.Page, p.CannotDeny = server.page, server.cannotDeny
			makesBuckets := server.variable == "AGENT_TEST_S3" && strings.Contains(text, "=http://127.0.0.1:")
			if makesBuckets {
				p.Deny = denying(text, p)
			}
			t.Run("bucket", func(t *testing.T) { storetest.Run(t, p) })
			if makesBuckets {
				t.Run("Object Lock, retention and versions", func(t *testing.T) {
					made := locked(t, text)
					p := inBucket(t, made, p.Prefix)
					p.Deny = denying(made, p)
					storetest.Run(t, p)
				})
			}
		})
	}
	if unset != nil {
		t.Run("other servers", func(t *testing.T) { t.Skipf("%s not set: see make test-stores", strings.Join(unset, ", ")) })
	}
}

// placeOf is where the store of a location is tried. missing has no bucket, or no folder.
func placeOf(l, missing Location) storetest.Place {
	return storetest.Place{
		Cloud: l.cloud, Prefix: l.Prefix, Folder: l.Folder, Missing: missing.Open("scope", new(cli.Process)),
		Open: func(scope string, network http.RoundTripper) store.Store {
			return l.Open(scope, &cli.Process{Network: network})
		},
	}
}

// newPrefix is one that no other test has.
func newPrefix() string { return storetest.NewKey() + "/" + storetest.OddPrefix }

// inBucket is a place below a prefix in the bucket of a URL.
func inBucket(t *testing.T, text, prefix string) storetest.Place {
	t.Helper()
	other, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if other.Scheme == "azblob" {
		other.Path = "/agent-missing"
	} else {
		other.Host = "agent-missing"
	}
	l := parse(t, text)
	l.Prefix = prefix
	return placeOf(l, parse(t, other.String()))
}

// parse is the place of a URL.
func parse(t *testing.T, text string) Location {
	t.Helper()
	l, err := ParseURL(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// denying returns what opens a store whose credentials may do all but one op. The policy is made of what errors say.
func denying(at string, p storetest.Place) func(*testing.T, string, string) store.Store {
	return func(t *testing.T, scope, denied string) store.Store {
		t.Helper()
		var statements []string
		for _, op := range []string{"list", "read", "write"} {
			if op != denied {
				statements = append(statements, p.Cloud.Grant(op, p.Prefix))
			}
		}
		if denied == "read" { // which the right to write has, too
			statements[1] = strings.Replace(statements[1], `"s3:GetObject", `, "", 1)
		}
		l := allowRole(t, at, `{"Version": "2012-10-17", "Statement": [`+strings.Join(statements, ",")+`]}`)
		l.Prefix = p.Prefix
		return l.Open(scope, new(cli.Process))
	}
}

// locked makes a bucket that keeps each version for a day, at the server of a URL, without the code that is tested here.
func locked(t *testing.T, at string) (made string) {
	t.Helper()
	parsed, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(parsed.Query().Get("region")))
	client := s3.NewFromConfig(loaded, func(o *s3.Options) {
		o.BaseEndpoint, o.UsePathStyle = aws.String(parsed.Query().Get("endpoint")), true
	})
	name := "agent-" + storetest.NewKey()
	if err == nil {
		_, err = client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name, ObjectLockEnabledForBucket: aws.Bool(true)})
	}
	if err == nil {
		retention := &types.DefaultRetention{Mode: types.ObjectLockRetentionModeCompliance, Days: aws.Int32(1)}
		_, err = client.PutObjectLockConfiguration(t.Context(), &s3.PutObjectLockConfigurationInput{
			Bucket: &name, ObjectLockConfiguration: &types.ObjectLockConfiguration{
				ObjectLockEnabled: types.ObjectLockEnabledEnabled, Rule: &types.ObjectLockRule{DefaultRetention: retention},
			},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(at, parsed.Host, name, 1)
}

// allowRole assumes a role that only has what a policy allows: MinIO has that.
func allowRole(t *testing.T, at, policy string) Location {
	t.Helper()
	parsed, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := parsed.Query().Get("endpoint")
	l := defaultLocation(backend{Type: "s3", Settings: map[string]any{
		"bucket": parsed.Host, "key": "k", "region": parsed.Query().Get("region"), "use_path_style": true,
		"endpoints":   map[string]any{"s3": endpoint, "sts": endpoint},
		"assume_role": map[string]any{"role_arn": "arn:aws:iam::123456789012:role/agent", "policy": policy},
	}})
	if l.Misconfigured != nil {
		t.Fatal(l.Misconfigured)
	}
	return l
}

// A store that ignores a condition is not used. Nor is one that does not accept the version which it, or a proxy, has named: it could not
// record what is sent. (S03)
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
