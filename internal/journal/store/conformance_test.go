// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

// What the journal demands of a store is tested here, at each place, by tests named TestStores_*. Check has a part of it, because
// users run that. What only one kind of store does has tests beside that store.

// oddPrefix has what may stand in the key of a state, and is special in some URL, pattern or signature.
const oddPrefix = "a b+c%20/ü#?:@$,;!&=~'(1)[x]/"

// place is where a store is tried.
type place struct {
	at, missing Location                                            // missing has no bucket, or no folder
	page        int                                                 // names in a page of a listing
	deny        func(t *testing.T, at Location, op string) Location // at without a right
	cannotDeny  string                                              // why there is no deny
}

func places(t *testing.T, try func(t *testing.T, p place)) {
	t.Helper()
	t.Run("folder", func(t *testing.T) {
		dir := t.TempDir()
		try(t, place{
			at: Location{Folder: filepath.Join(dir, "app[1] [ünï"), Default: true}, missing: Location{Folder: filepath.Join(dir, "missing")},
			cannotDeny: "the system's error says which file it denies, and root is denied nothing",
		})
	})
	t.Run("fake S3", func(t *testing.T) {
		f := fakes3.New(t)
		p := inBucket(t, f.URL)
		p.page = 20
		p.deny = func(t *testing.T, at Location, denied string) Location {
			t.Cleanup(func() { f.SetHook(nil) })
			f.SetHook(func(r *http.Request, _ func()) int {
				op := map[string]string{http.MethodGet: "read", http.MethodPut: "write", http.MethodDelete: "remove"}[r.Method]
				if r.URL.Query().Has("list-type") {
					op = "list"
				}
				return map[bool]int{true: http.StatusForbidden}[op == denied]
			})
			return at
		}
		try(t, p)
	})
	var unset []string
	for _, server := range []struct {
		name, variable string
		page           int
		allow          func(t *testing.T, l Location, policy string) Location
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
			p.page, p.cannotDeny = server.page, server.cannotDeny
			bucket, isS3 := p.at.cloud.(*s3Bucket)
			if isS3 && !strings.HasPrefix(bucket.endpoint, "http://127.0.0.1:") { // chosen by a person
				p.cannotDeny = "buckets and rights are made only at a server on this machine"
			} else if isS3 {
				p.deny = func(t *testing.T, at Location, op string) Location { return server.allow(t, at, policyWithout(at, op)) }
			}
			t.Run("bucket", func(t *testing.T) { try(t, p) })
			for _, isLocked := range []bool{false, true} {
				if p.deny == nil {
					break
				}
				t.Run(map[bool]string{false: "versioned bucket", true: "Object Lock and retention"}[isLocked], func(t *testing.T) {
					p := p
					p.at, p.page = versioned(t, p.at, isLocked), 0
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
	if p.at, err = ParseURL(text); err != nil {
		t.Fatal(err)
	}
	if parsed.Scheme == "azblob" {
		parsed.Path = "/agent-missing"
	} else {
		parsed.Host = "agent-missing"
	}
	if p.missing, err = ParseURL(parsed.String()); err != nil {
		t.Fatal(err)
	}
	p.at.Prefix = NewName("", "").ID + "/" + oddPrefix
	return p
}

func connect(t *testing.T, l Location) objects {
	t.Helper()
	o, err := l.cloud.connect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// versioned makes a bucket that keeps versions, each for a day if it is locked.
func versioned(t *testing.T, l Location, isLocked bool) Location {
	t.Helper()
	bucket, _ := l.cloud.(*s3Bucket)
	made := *bucket
	made.name = "agent-" + strings.ToLower(NewName("", "").ID)
	l.cloud = &made
	client := connect(t, l).(*s3Objects).client
	_, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &made.name, ObjectLockEnabledForBucket: &isLocked})
	if err == nil && isLocked {
		_, err = client.PutObjectLockConfiguration(t.Context(), &s3.PutObjectLockConfigurationInput{
			Bucket: &made.name, ObjectLockConfiguration: &types.ObjectLockConfiguration{
				ObjectLockEnabled: types.ObjectLockEnabledEnabled,
				Rule:              &types.ObjectLockRule{DefaultRetention: &types.DefaultRetention{Mode: types.ObjectLockRetentionModeCompliance, Days: aws.Int32(1)}},
			},
		})
	} else if err == nil {
		_, err = client.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
			Bucket: &made.name, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// policyWithout allows all that the journal does at a place, but for one op. It is made of what errors say.
func policyWithout(l Location, denied string) string {
	var statements []string
	for _, op := range []string{"list", "read", "write", "remove"} {
		if op != denied {
			statements = append(statements, l.cloud.grant(op, l.Prefix))
		}
	}
	return `{"Version": "2012-10-17", "Statement": [` + strings.Join(statements, ",") + `]}`
}

// allowRole assumes a role that only has what a policy allows: MinIO has that.
func allowRole(t *testing.T, l Location, policy string) Location {
	t.Helper()
	bucket, _ := l.cloud.(*s3Bucket)
	as := *bucket
	as.aws.stsEndpoint, as.aws.role = bucket.endpoint, assumedRole{ARN: "arn:aws:iam::123456789012:role/agent", Policy: &policy}
	l.cloud = &as
	return l
}

// allowUser makes this test's credentials those of a user who has the same secret, and no more than the bucket's policy
// allows: versitygw cannot assume roles without a token.
func allowUser(t *testing.T, l Location, policy string) Location {
	t.Helper()
	policy = strings.ReplaceAll(policy, `"Effect"`, `"Principal": {"AWS": ["agent-user"]}, "Effect"`)
	o, _ := connect(t, l).(*s3Objects)
	if _, err := o.client.PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{Bucket: &o.name, Policy: &policy}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "agent-user")
	return l
}

// put stores what is no entry, beside the scope of the tests.
func put(t *testing.T, l Location, key string) {
	t.Helper()
	var err error
	if l.cloud != nil {
		err = connect(t, l).put(t.Context(), l.Prefix+key, []byte("{}"))
	} else {
		file := filepath.Join(l.Folder, filepath.FromSlash(key))
		err = errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("{}"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ops are the errors of all calls of a store, each with the time that a step of a check has.
func ops(t *testing.T, s Store, name Name) map[string]error {
	t.Helper()
	errs := map[string]error{}
	for _, op := range []string{"write", "read", "list", "remove"} {
		ctx, cancel := context.WithTimeout(t.Context(), checkLimit)
		switch op {
		case "write":
			errs[op] = s.Write(ctx, name, &Entry{})
		case "read":
			_, errs[op] = s.Read(ctx, name)
		case "list":
			_, errs[op] = s.List(ctx, "")
		case "remove":
			errs[op] = s.Remove(ctx, name)
		}
		cancel()
	}
	return errs
}

func nameOf(key Key) Name { return NewName(key, "0123456789abcxyz") }

// Each write, overwrite and removal shows at once, a removal may be repeated, and nothing is left.
func TestStores_check(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		var printed strings.Builder
		if err := Check(t.Context(), &printed, p.at); err != nil || strings.Contains(printed.String(), "note") {
			t.Errorf("%v\n%s", err, &printed)
		}
		if p.at.cloud == nil {
			if files, err := os.ReadDir(p.at.Folder); len(files) != 1 || files[0].Name() != ".gitignore" {
				t.Errorf("left: %v, %v", files, err)
			}
			return
		}
		for key, err := range connect(t, p.at).list(t.Context(), p.at.Prefix) {
			t.Errorf("left: %s, %v", key, err)
		}
	})
}

// A listing has all pages, and only the names of its scope that start with the prefix. What may be an entry of a later
// version is an error.
func TestStores_list(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		s, key := open(t, p.at), CreateKey("p", "a", "")
		var want []string
		var writes errgroup.Group
		writes.SetLimit(16)
		others := []Name{nameOf(CreateKey("p", "b", "")), nameOf(NamedCreateKey("p", "n", "")), nameOf(MessageKey("p", "j", "a"))}
		for i := range p.page + 2 + len(others) {
			name := nameOf(key)
			if i < len(others) {
				name = others[i]
			} else {
				want = append(want, name.String())
			}
			writes.Go(func() error { return s.Write(t.Context(), name, &Entry{}) })
		}
		if err := writes.Wait(); err != nil {
			t.Fatal(err)
		}
		other := nameOf(key).String() + suffix
		for _, file := range []string{"scope/note.txt", "scope/deeper/" + other, "scope2/" + other, other} {
			put(t, p.at, file)
		}
		for prefix, want := range map[string][]string{
			string(key): want, "create-": append(slices.Clone(want), others[0].String(), others[1].String()),
			others[2].Key.Family(): {others[2].String()}, string(CreateKey("p", "c", "")): nil,
		} {
			names, err := s.List(t.Context(), prefix)
			var got []string
			for _, name := range names {
				got = append(got, name.String())
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", prefix, err, diff)
			}
		}
		put(t, p.at, "scope/"+string(key)+"-later"+suffix)
		if names, err := s.List(t.Context(), string(key)); err == nil {
			t.Errorf("what may be an entry of a later version is ignored: %v", names)
		}
	})
}

// cutting cancels a request after some bytes of its body.
type cutting struct {
	io.ReadCloser

	bytes  int
	cancel context.CancelFunc
}

func (c *cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r = r.Clone(r.Context())
		r.Body = &cutting{r.Body, c.bytes, c.cancel}
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (c *cutting) Read(p []byte) (int, error) {
	if c.bytes == 0 {
		c.cancel()
		return 0, context.Canceled
	}
	n, err := c.ReadCloser.Read(p[:min(len(p), c.bytes)])
	c.bytes -= n
	return n, err
}

// A write that is cut off leaves the old entry or the new one, or none if there was none.
func TestStores_cutWrite(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		s, old, fresh := open(t, p.at), nameOf(CreateKey("p", "a", "")), nameOf(CreateKey("p", "b", ""))
		if err := s.Write(t.Context(), old, &Entry{Status: Accepted, JobID: "old"}); err != nil {
			t.Fatal(err)
		}
		e := &Entry{Status: Accepted, JobID: "new", Before: []string{strings.Repeat("x", 300)}}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		for bytes := range len(text) {
			if bytes%50 != 0 && bytes != len(text)-1 {
				continue
			}
			for _, name := range []Name{old, fresh} {
				ctx, cancel := context.WithCancel(t.Context())
				if p.at.cloud == nil { // a folder writes at one stroke
					cancel()
				}
				cut := Open(p.at, "scope", &cli.Process{Network: &cutting{bytes: bytes, cancel: cancel}})
				if err := cut.Write(ctx, name, e); err == nil {
					t.Errorf("cut after %d of %d bytes, and no error", bytes, len(text))
				}
				cancel()
			}
			for name, want := range map[Name]string{old: "old", fresh: ""} {
				got := ""
				e, err := s.Read(t.Context(), name)
				if e != nil {
					got = e.JobID + map[bool]string{true: " damaged"}[e.Status != Accepted]
				}
				if got != want && got != "new" || err != nil {
					t.Errorf("cut after %d bytes: %q, want %q or new: %v", bytes, got, want, err)
				}
			}
		}
		if names, err := s.List(t.Context(), string(old.Key)); len(names) != 1 || err != nil {
			t.Errorf("%v, %v", names, err)
		}
	})
}

// An error says which right is missing, and the other rights suffice for the rest. Each policy is made of what such errors say.
func TestStores_denied(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		if p.deny == nil {
			t.Skip("nothing is denied here: " + p.cannotDeny)
		}
		name := nameOf(CreateKey("p", "a", ""))
		for _, denied := range []string{"", "list", "read", "write", "remove"} {
			t.Run("without "+denied, func(t *testing.T) {
				if err := open(t, p.at).Write(t.Context(), name, &Entry{}); err != nil {
					t.Fatal(err)
				}
				for op, err := range ops(t, open(t, p.deny(t, p.at, denied)), name) {
					grant := p.at.cloud.grant(op, p.at.Prefix)
					if (err != nil) != (op == denied) || err != nil && !strings.Contains(err.Error(), grant) {
						t.Errorf("%s: %v; want %s only if denied", op, err, grant)
					}
				}
			})
		}
	})
}

// Only a bucket or folder that exists can say that there is no entry.
func TestStores_missing(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		for op, err := range ops(t, open(t, p.missing), nameOf(CreateKey("p", "a", ""))) {
			if err == nil {
				t.Errorf("%s works at %s", op, p.missing)
			}
		}
	})
}

// silence never responds.
type silence struct{}

func (silence) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A call ends with its context, whatever the store does.
func TestStores_silent(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		if p.at.cloud == nil {
			t.Skip("the system does not interrupt a call to a file system that hangs")
		}
		synctest.Test(t, func(t *testing.T) {
			s := Open(p.at, "scope", &cli.Process{Network: silence{}})
			start := time.Now()
			for op, err := range ops(t, s, nameOf(CreateKey("p", "a", ""))) {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v", op, err)
				}
			}
			if took := time.Since(start); took != 4*checkLimit {
				t.Errorf("four calls took %s, want %s each", took, checkLimit)
			}
		})
	})
}
