// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package place

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// What the journal demands of a store is tested here, at each place, by tests named TestStores_*. Check has a part of it, because
// users run that. What only one kind of store does has tests beside that store.

// oddPrefix has what may stand in the key of a state, and is special in some URL, pattern or signature.
const oddPrefix = "a b+c%20/ü#?:@$,;!&=~'(1)[x]/"

// place is where a store is tried.
type place struct {
	url         string                                              // of at, but for the prefix
	at, missing Location                                            // missing has no bucket, or no folder
	page        int                                                 // names in a page of a listing
	deny        func(t *testing.T, at Location, op string) Location // at without a right
	cannotDeny  string                                              // why there is no deny
	forget      func(t *testing.T, at Location, key string)         // deletes what a key has, as only a person does
}

func places(t *testing.T, try func(t *testing.T, p place)) {
	t.Helper()
	t.Run("folder", func(t *testing.T) {
		dir := t.TempDir()
		try(t, place{
			at: Location{Folder: filepath.Join(dir, "app[1] [ünï"), Default: true}, missing: Location{Folder: filepath.Join(dir, "missing")},
			cannotDeny: "the system's error says which file it denies, and root is denied nothing",
			forget: func(t *testing.T, at Location, key string) {
				if err := os.RemoveAll(open(t, at).Where(key)); err != nil {
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
		p.forget = func(_ *testing.T, at Location, key string) {
			f.Lock()
			defer f.Unlock()
			delete(f.Objects, at.Prefix+"scope/"+key+store.Suffix)
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
			p.page, p.cannotDeny = server.page, server.cannotDeny
			if !strings.HasPrefix(text, "gs://") { // no test has a client for Google
				p.forget = forgetting(text)
			}
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
					p.at, p.deny, p.forget = at(t, p.url, p.at.Prefix), denying(p, server.allow), forgetting(p.url)
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
	p.url, p.at = text, at(t, text, storetest.NewKey()+"/"+oddPrefix)
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

func connect(t *testing.T, l Location) bucket.Objects {
	t.Helper()
	o, err := l.cloud.Connect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return o
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
	l, _, err := Beside(cli.Backend{Type: "s3", Settings: map[string]any{
		"bucket": parsed.Host, "key": "k", "region": parsed.Query().Get("region"), "use_path_style": true,
		"endpoints":   map[string]any{"s3": endpoint, "sts": endpoint},
		"assume_role": map[string]any{"role_arn": "arn:aws:iam::123456789012:role/agent", "policy": policy},
	}})
	if err != nil {
		t.Fatal(err)
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
func forgetting(url string) func(*testing.T, Location, string) {
	return func(t *testing.T, at Location, key string) {
		t.Helper()
		remove(t, url, at.Prefix+"scope/"+key+store.Suffix)
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

// putFile stores what the journal does not, beside the scope of the tests or in it.
func putFile(t *testing.T, l Location, file, text string) {
	t.Helper()
	var err error
	if l.cloud != nil {
		_, err = connect(t, l).Put(t.Context(), l.Prefix+file, []byte(text), "")
	} else {
		path := filepath.Join(l.Folder, filepath.FromSlash(file))
		err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A check may be repeated. It leaves nothing in a folder, and in a bucket what it writes each time.
func TestStores_check(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		for range 2 {
			var printed strings.Builder
			if err := Check(t.Context(), &printed, p.at); err != nil || strings.Contains(printed.String(), "denied") {
				t.Errorf("%v\n%s", err, &printed)
			}
		}
		if p.at.cloud == nil {
			if left := storetest.Files(t, p.at.Folder); len(left) != 1 || left[0] != ".gitignore" {
				t.Errorf("left: %v", left)
			}
			return
		}
		var left []string
		for o, err := range connect(t, p.at).List(t.Context(), p.at.Prefix) {
			left = append(left, strings.TrimPrefix(o.Key, p.at.Prefix))
			if err != nil {
				t.Error(err)
			}
		}
		want := []string{"check/_conditions.json", "check/check.json"}
		if diff := cmp.Diff(want, left); diff != "" {
			t.Errorf("left (-want +got):\n%s", diff)
		}
	})
}

// A write replaces the version that it names, and no other. A version is the same in a write, a read and a listing.
func TestStores_conditions(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		s, key := open(t, p.at), storetest.NewKey()
		refused := func(what string, ifVersion store.Version) {
			t.Helper()
			if v, err := s.Put(t.Context(), key, []byte(`"refused"`), ifVersion); !errors.Is(err, store.ErrConflict) || v != "" {
				t.Errorf("%s: version %q, %v", what, v, err)
			}
		}
		storetest.Want(t, s, key, "")
		refused("change of nothing", foreignVersion(p.at))
		first := storetest.Write(t, s, key, `"first"`, "")
		refused("second of two new ones", "")
		refused("change of what was never there", foreignVersion(p.at))
		refused("version of another kind of store", `"another"`)
		second := storetest.Write(t, s, key, `"second"`, first)
		refused("change of an old version", first)
		refused("new one over a changed one", "")
		third := storetest.Write(t, s, key, `"third"`, storetest.Want(t, s, key, `"second"`))
		listed, err := s.List(t.Context())
		if got := storetest.Want(t, s, key, `"third"`); len(listed) != 1 || listed[key].Version != third || got != third || third == second || err != nil {
			t.Errorf("written as %s, listed as %v, read as %s, %v", third, listed, got, err)
		}
		if age := time.Since(listed[key].Written); age.Abs() > time.Hour {
			t.Errorf("written %s ago", age)
		}
		if p.forget == nil {
			return
		}
		p.forget(t, p.at, key)
		storetest.Want(t, s, key, "")
		refused("change of what was deleted", third)
		storetest.Write(t, s, key, `"fourth"`, "")
		storetest.Want(t, s, key, `"fourth"`)
	})
}

// foreignVersion is well-formed, but that of nothing.
func foreignVersion(l Location) store.Version {
	if l.cloud != nil {
		return l.cloud.Never()
	}
	return "41"
}

// Of the writers that have read the same version, one wins.
func TestStores_race(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		key, version := storetest.NewKey(), store.Version("")
		for round := range 50 {
			texts, versions, errs := make([]string, 6), make([]store.Version, 6), make([]error, 6)
			var writers sync.WaitGroup
			for i := range texts {
				texts[i] = fmt.Sprintf(`"round %d, writer %d"`, round, i)
				s := open(t, p.at)
				writers.Go(func() { versions[i], errs[i] = s.Put(t.Context(), key, []byte(texts[i]), version) })
			}
			writers.Wait()
			winner := slices.Index(errs, nil)
			if winner < 0 {
				t.Fatalf("round %d: nobody wins: %v", round, errs)
			}
			for i, err := range errs {
				if i != winner && !errors.Is(err, store.ErrConflict) {
					t.Fatalf("round %d: %d wins, and %d: %v", round, winner, i, err)
				}
			}
			if version = storetest.Want(t, open(t, p.at), key, texts[winner]); version != versions[winner] {
				t.Fatalf("round %d: written as %s, read as %s", round, versions[winner], version)
			}
		}
	})
}

// transport is a network with faults.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var errLost = errors.New("the response is lost")

// A write whose response is lost is no success, and shows in a read. One that arrives after a newer one changes nothing.
func TestStores_lostAndLate(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		if p.at.cloud == nil {
			t.Skip("nothing is on its way to a folder, or from there")
		}
		s, key := open(t, p.at), storetest.NewKey()
		for range 2 { // a new text, and a change
			_, before, err := s.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			held := make(chan *http.Request, 1)
			ctx, cancel := context.WithCancel(t.Context())
			holds := p.at.Open("scope", &cli.Process{Network: transport(func(r *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				late := r.Clone(context.WithoutCancel(r.Context()))
				late.Body = io.NopCloser(bytes.NewReader(body))
				held <- late
				cancel()
				return nil, errors.Join(err, ctx.Err())
			})})
			if _, err = holds.Put(ctx, key, []byte(`"late"`), before); err == nil || errors.Is(err, store.ErrConflict) {
				t.Errorf("no response, and %v", err)
			}
			isFirst := true
			loses := p.at.Open("scope", &cli.Process{Network: transport(func(r *http.Request) (*http.Response, error) {
				response, err := http.DefaultTransport.RoundTrip(r)
				if err == nil && isFirst {
					isFirst = false
					return nil, errors.Join(errLost, response.Body.Close())
				}
				return response, err
			})})
			newer := fmt.Sprintf("%q", "after "+before)
			if _, err = loses.Put(t.Context(), key, []byte(newer), before); !errors.Is(err, store.ErrConflict) && !errors.Is(err, errLost) {
				t.Errorf("a lost response is %v", err)
			}
			storetest.Want(t, s, key, newer)
			response, err := http.DefaultTransport.RoundTrip(<-held)
			if err != nil {
				t.Fatal(err)
			}
			if _ = response.Body.Close(); response.StatusCode != http.StatusPreconditionFailed && response.StatusCode != http.StatusConflict {
				t.Errorf("late write after %q: status %d", before, response.StatusCode)
			}
			storetest.Want(t, s, key, newer)
		}
	})
}

// A listing has all pages, and only the keys of its scope.
func TestStores_list(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		s := open(t, p.at)
		if found, err := s.List(t.Context()); len(found) > 0 || err != nil {
			t.Errorf("a new scope: %v, %v", found, err)
		}
		var lock sync.Mutex
		want := map[string]store.Version{}
		var writes errgroup.Group
		writes.SetLimit(16)
		for range p.page + 2 {
			writes.Go(func() error {
				key := storetest.NewKey()
				v, err := s.Put(t.Context(), key, []byte(key), "")
				lock.Lock()
				defer lock.Unlock()
				want[key] = v
				return err
			})
		}
		if err := errors.Join(writes.Wait(), s.Prove(t.Context())); err != nil {
			t.Fatal(err)
		}
		other := storetest.NewKey() + store.Suffix
		for _, file := range []string{
			"scope/note.txt", "scope/deeper/" + other, "scope/Upper" + store.Suffix, "scope/" + strings.Repeat("k", 63) + store.Suffix, "scope2/" + other, other,
		} {
			putFile(t, p.at, file, "{}")
		}
		found, err := s.List(t.Context())
		got := map[string]store.Version{}
		for key, listed := range found {
			got[key] = listed.Version
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// A text is what was written, whatever it is, and never a part of it.
func TestStores_texts(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		s := open(t, p.at)
		for _, text := range []string{"{", "\x00\xff\r\n", strings.Repeat("x", store.MaxText)} {
			key := storetest.NewKey()
			storetest.Write(t, s, key, text, "")
			storetest.Want(t, s, key, text)
		}
		empty := storetest.NewKey()
		v := storetest.Write(t, s, empty, "", "")
		if text, got, err := s.Get(t.Context(), empty); len(text) > 0 || got != v || err != nil {
			t.Errorf("an empty text: %q, %q, %v", text, got, err)
		}
		long, key := strings.Repeat("x", store.MaxText+1), storetest.NewKey()
		if _, err := s.Put(t.Context(), storetest.NewKey(), []byte(long), ""); err == nil {
			t.Error("wrote a text that is too long")
		}
		putFile(t, p.at, map[bool]string{true: "scope/" + key + "/1.json", false: "scope/" + key + store.Suffix}[p.at.cloud == nil], long)
		if text, v, err := s.Get(t.Context(), key); len(text) > 0 || v != "" || err == nil {
			t.Errorf("read %d bytes of a text that is too long, version %q, %v", len(text), v, err)
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

// A write that is cut off leaves the old text or the new one, or none if there was none.
func TestStores_cutWrite(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		s, text := open(t, p.at), `"`+strings.Repeat("x", 300)+`"`
		for count := 0; count < len(text); count += 50 {
			for _, old := range []string{"", `"old"`} {
				key, before := storetest.NewKey(), store.Version("")
				if old != "" {
					before = storetest.Write(t, s, key, old, "")
				}
				ctx, cancel := context.WithCancel(t.Context())
				if p.at.cloud == nil { // a folder writes at one stroke
					cancel()
				}
				cut := p.at.Open("scope", &cli.Process{Network: &cutting{bytes: count, cancel: cancel}})
				if _, err := cut.Put(ctx, key, []byte(text), before); err == nil {
					t.Errorf("cut after %d of %d bytes, and no error", count, len(text))
				}
				cancel()
				if got, _, err := s.Get(t.Context(), key); string(got) != old && string(got) != text || err != nil {
					t.Errorf("cut after %d bytes: %q, want %q or the new one: %v", count, got, old, err)
				}
			}
		}
	})
}

// An error says which right is missing, and the other rights suffice for the rest. Each policy is made of what such errors say.
func TestStores_denied(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		if p.deny == nil {
			t.Skip("nothing is denied here: " + p.cannotDeny)
		}
		key := storetest.NewKey()
		storetest.Write(t, open(t, p.at), key, "{}", "")
		for _, denied := range []string{"", "list", "read", "write"} {
			t.Run("without "+denied, func(t *testing.T) {
				s := open(t, p.deny(t, p.at, denied))
				for op, err := range storetest.Ops(t, s, key) {
					needs := strings.Replace(op, "prove", "write", 1)
					grant := p.at.cloud.Grant(needs, p.at.Prefix)
					if (err != nil) != (needs == denied) || errors.Is(err, store.ErrDenied) != (err != nil) || err != nil && !strings.Contains(err.Error(), grant) {
						t.Errorf("%s: %v; want %s only if denied", op, err, grant)
					}
				}
				err, grant := s.CanRead(t.Context()), p.at.cloud.Grant("write", p.at.Prefix)
				if denied == "read" && (!errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), grant)) {
					t.Errorf("a plan's look: %v; want %s, which its apply needs", err, grant)
				}
			})
		}
	})
}

// Only a bucket or folder that exists can say that there is nothing.
func TestStores_missing(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		for op, err := range storetest.Ops(t, open(t, p.missing), storetest.NewKey()) {
			if err == nil || errors.Is(err, store.ErrConflict) {
				t.Errorf("%s at %s: %v", op, p.missing, err)
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
			s := p.at.Open("scope", &cli.Process{Network: silence{}})
			start := time.Now()
			for op, err := range storetest.Ops(t, s, storetest.NewKey()) {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v", op, err)
				}
			}
			if took := time.Since(start); took != 4*storetest.Limit {
				t.Errorf("four calls took %s, want %s each", took, storetest.Limit)
			}
		})
	})
}
