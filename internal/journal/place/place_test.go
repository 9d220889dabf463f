// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package place

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/azblob"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

func TestParseURL(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		text, want, state string
		err               error
	}{
		{text: filepath.Join(dir, "a#b?c d") + string(filepath.Separator), want: filepath.Join(dir, "a#b?c d")},
		{text: filepath.Join(dir, "a") + "?state=app", want: filepath.Join(dir, "a"), state: "app"},
		{text: "S3://bucket//a/b//", want: "s3://bucket/a/b/"},
		{text: "s3://bucket/a%20b?region=eu-central-1", want: "s3://bucket/a b/"},
		{text: "s3://bucket?endpoint=https://s3.example.com:9000/", want: "s3://bucket/"},
		{text: "s3://bucket?endpoint=http://[::1]:9000", want: "s3://bucket/"},
		{text: "s3://bucket?endpoint=http://localhost&region=x", want: "s3://bucket/"},
		{text: "s3://bucket?state=app%2Fprod", want: "s3://bucket/", state: "app/prod"},
		{text: "s3://bucket?profile=p&acl=private&encrypt=true&kms_key_id=k&skip_s3_checksum=true&use_path_style=false", want: "s3://bucket/"},
		{text: "gs://my_bucket//a/b//?state=app", want: "gs://my_bucket/a/b/", state: "app"},
		{text: "GS://b?endpoint=http://[::1]:9000/", want: "gs://b/"},
		{text: "gs://b?kms_encryption_key=projects/p/locations/l/keyRings/r/cryptoKeys/k", want: "gs://b/"},
		{text: "azblob://devstate/ci-state", want: "azblob://devstate/ci-state/"},
		{text: "azblob://devstate/ci-state//a/b/?state=app&endpoint=http://127.0.0.1:10000/devstate/",
			want: "azblob://devstate/ci-state/a/b/", state: "app"},
		{text: "s3://bucket?assume_role=canary", err: errURL},
		{text: "gs://b?region=canary", err: errURL},
		{text: "gs://b?encrypt=true", err: errURL},
		{text: "gs://b?storage_custom_endpoint=https://canary", err: errURL},
		{text: "gs://b?endpoint=http://g.example.com", err: settings.ErrEmulator},
		{text: "gs://b?endpoint=https://canary.example.com", err: settings.ErrEmulator},
		{text: "gs://b?endpoint=https://localhost.canary", err: settings.ErrEmulator},
		{text: "gs://b?endpoint=http://localhost@canary", err: settings.ErrEmulator},
		{text: "gs://b?endpoint=http://canary@localhost", err: settings.ErrEndpoint},
		{text: filepath.Join(dir, "a") + "?state=", err: errURL},
		{text: "", err: errURL},
		{text: "https://bucket", err: errURL},
		{text: "s3://%zz", err: errURL},
		{text: "s3:///a", err: errURL},
		{text: "s3://user:canary@bucket", err: errURL},
		{text: "s3://bucket:", err: errURL},
		{text: "s3://bucket/canary#", err: errURL},
		{text: "s3://bucket?region=", err: errURL},
		{text: "s3://bucket?region=a&region=b", err: errURL},
		{text: "s3://bucket?region=%zz", err: errURL},
		{text: "s3://bucket?endpoint=http://127.0.0.1.example.com", err: settings.ErrEndpoint},
		{text: "s3://bucket?endpoint=ftp://localhost", err: settings.ErrEndpoint},
		{text: "s3://bucket?endpoint=https://user:canary@s3.example.com", err: settings.ErrEndpoint},
		{text: "s3://bucket?endpoint=https://s3.example.com%3Fa", err: settings.ErrEndpoint},
		{text: "s3://bucket?endpoint=https://s3.example.com%23a", err: settings.ErrEndpoint},
		{text: "s3://bucket?endpoint=https://", err: settings.ErrEndpoint},
		{text: "s3://bucket?endpoint=%25zz", err: settings.ErrEndpoint},
		{text: "azblob://devstate/ci-state?endpoint=https://canary.example.com", err: settings.ErrEmulator},
		{text: "azblob://devstate/ci-state?endpoint=https://%25zz", err: settings.ErrEmulator},
		{text: filepath.Join(dir, "a") + "\n", err: errInvisible},
		{text: filepath.Join(dir, "a") + " ", err: errInvisible},
		{text: filepath.Join(dir, "a", "\u200bcanary"), err: errInvisible},
		{text: filepath.Join(dir, "a") + "?state=app ", err: errInvisible},
		{text: filepath.Join(dir, "a") + " ?state=app", err: errInvisible},
		{text: "s3://bucket/a\n", err: errInvisible},
		{text: " s3://bucket/a", err: errInvisible},
		{text: "s3://bucket/a%0Acanary", err: errInvisible},
		{text: "s3://bucket/a%20", err: errInvisible},
		{text: "s3://bucket/a /b", err: errInvisible},
		{text: "s3://bucket/%E2%80%8B", err: errInvisible},
		{text: "s3://bucket?state=+app", err: errInvisible},
		{text: "s3://bucket?state=app%0D%0A", err: errInvisible},
		{text: "s3://bucket?state=%C2%A0app", err: errInvisible},
		{text: "s3://bucket?profile=canary%20", err: errInvisible},
		{text: "azblob://devstate/ci-state?region=canary", err: errURL},
		{text: "azblob://dev.canary/ci-state", err: azblob.ErrNames},
		{text: "azblob://devstate", err: azblob.ErrNames},
	} {
		t.Run(test.text, func(t *testing.T) {
			got, err := ParseURL(test.text)
			if !errors.Is(err, test.err) || err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v, want %v", err, test.err)
			}
			if got.String() != test.want || got.State != test.state {
				t.Errorf("got %s of %q, want %s of %q", got, got.State, test.want, test.state)
			}
		})
	}
	for _, example := range Examples() {
		where, query, _ := strings.Cut(example, "?")
		got, err := ParseURL(where + "?state=app&endpoint=https://127.0.0.1&" + query)
		if err != nil || got.String() != where+"/" || got.State != "app" {
			t.Errorf("%s: got %s of %q, %v", example, got, got.State, err)
		}
		for _, secret := range []string{"access_key", "access_token", "account_key", "client_secret", "credentials", "password", "sas_token", "secret_key", "token"} {
			if _, err := ParseURL(where + "?" + secret + "=canary&" + query); !errors.Is(err, errURL) {
				t.Errorf("%s, with %s: %v", example, secret, err)
			}
		}
		if _, err := ParseURL(where + "?endpoint=http://store.example.com"); !errors.Is(err, settings.ErrEndpoint) && !errors.Is(err, settings.ErrEmulator) {
			t.Errorf("%s, unencrypted: %v", example, err)
		}
	}
}

// Whatever a person writes is refused, or leads to one place, which its name shows.
func FuzzParseURL(f *testing.F) {
	for _, example := range append(Examples(), "/a/b?state=c", "s3://b/p?endpoint=https://s3.example.com&state=a%2Fb", "gs://b?endpoint=http://[::1]:1") {
		f.Add(example)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseURL(text)
		if err != nil {
			if l.String() != "" {
				t.Errorf("%q: %v, and %s", text, err, l)
			}
			return
		}
		for _, part := range []string{l.String(), l.State} {
			if part != strings.TrimSpace(part) || strings.ContainsFunc(part, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q leads to %q of %q", text, l, l.State)
			}
		}
		if l.IsBucket() && l.Prefix != "" && (l.Prefix[0] == '/' || !strings.HasSuffix(l.Prefix, "/")) {
			t.Errorf("%q: prefix %q", text, l.Prefix)
		}
	})
}

// A place that cannot be used is an error of each operation, and of nothing before.
func TestOpen_unusable(t *testing.T) {
	cause := errors.New("a setting")
	for _, l := range []Location{{Unusable: cause}, {Folder: t.TempDir(), Unusable: cause}} {
		s := l.Open("scope", new(cli.Process))
		for op, err := range storetest.Ops(t, s, "a") {
			if !errors.Is(err, cause) {
				t.Errorf("%s: %v", op, err)
			}
		}
		if want := (store.Place{Name: l.Folder, IsLocal: true}); s.Place() != want {
			t.Errorf("%+v, want %+v", s.Place(), want)
		}
	}
	for op, err := range storetest.Ops(t, store.Discard(), "a") {
		if err != nil {
			t.Errorf("a store that keeps nothing: %s: %v", op, err)
		}
	}
}

// What is no key becomes no part of a path.
func TestCheckKey(t *testing.T) {
	bucket, err := ParseURL(fakes3.New(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	for key, isKey := range map[string]bool{
		"a": true, "a-1": true, strings.Repeat("k", 62): true, strings.Repeat("k", 63): false, "": false, "a/b": false, "..": false, "A": false, "_conditions": false,
	} {
		for _, l := range []Location{{Folder: t.TempDir()}, bucket} {
			s := l.Open("scope", new(cli.Process))
			_, putErr := s.Put(t.Context(), storetest.New(key), nil)
			if _, err := s.Get(t.Context(), key); (err == nil) != isKey || (putErr == nil) != isKey {
				t.Errorf("%q: %v, %v", key, err, putErr)
			}
		}
	}
}

// A setting that says where a state is identifies it, and its default is what null is. Of two places beside states, the states differ.
func TestStateID(t *testing.T) {
	for _, kind := range kinds() {
		settings := map[string]any{}
		for name := range kind.Locating {
			settings[name] = "aaa"
		}
		with := func(name string, value any) cli.Backend {
			b := cli.Backend{Type: kind.Backend, Settings: maps.Clone(settings)}
			b.Settings[name] = value
			return b
		}
		where := func(b cli.Backend) string {
			l, _, err := Beside(b)
			if err != nil { // nothing is kept there
				return ""
			}
			return l.String()
		}
		id := func(b cli.Backend) string { id, _ := StateID(b); return id }
		for name, usual := range kind.Locating {
			if id(with(name, "bbb")) == id(with("", nil)) {
				t.Errorf("%s: another %s is another state", kind.Backend, name)
			}
			null, same := with(name, nil), with(name, usual)
			if id(same) != id(null) || where(same) != where(null) {
				t.Errorf("%s: with %s = null and %q, the states are %s and %s, at %s and %s",
					kind.Backend, name, usual, id(null), id(same), where(null), where(same))
			}
		}
	}
	for _, test := range []struct {
		kind     string
		one, two map[string]any
		isKnown  bool
	}{
		{"s3", map[string]any{"bucket": "b", "key": "k", "region": "eu-central-1", "profile": "laptop", "workspace_key_prefix": nil},
			map[string]any{"bucket": "b", "key": "k", "access_key": "AKIA", "endpoints": map[string]any{"s3": "https://vpce"}}, true},
		{"gcs", map[string]any{"bucket": "b", "prefix": "p/", "credentials": "laptop.json"},
			map[string]any{"bucket": "b", "prefix": "p", "impersonate_service_account": "ci@example.com"}, true},
		{"http", map[string]any{"address": "https://a", "password": "1"}, map[string]any{"address": "https://a", "password": "2", "username": nil}, false},
		{"", nil, nil, false},
	} {
		one, isKnown := StateID(cli.Backend{Type: test.kind, Settings: test.one})
		if two, _ := StateID(cli.Backend{Type: test.kind, Settings: test.two}); one != two || isKnown != test.isKnown {
			t.Errorf("two ways to one state are two states: %s, %s, known: %t", one, two, isKnown)
		}
	}
}

// The guide has a section for each kind of store. What it calls not supported is refused by name, as a setting or as a variable.
func TestKinds_areInTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../../templates/guides/journal.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds() {
		_, section, _ := strings.Cut(string(guide), "\n- With the backend `"+kind.Backend+"`")
		section, _, _ = strings.Cut(section, "\n#")
		if !strings.Contains(section, "\n- A URL is `"+kind.Scheme+"://") || !strings.Contains(section, "\n- A plan needs ") {
			t.Errorf("the guide does not say what a person must know of %s: %s", kind.Backend, section)
		}
		for _, parameter := range kind.Accepts {
			if !strings.Contains(section, "`"+parameter+"`") {
				t.Errorf("the guide does not name the parameter %s of %s", parameter, kind.Scheme)
			}
		}
		_, refused, _ := strings.Cut(section, "Not supported: ")
		refused, _, _ = strings.Cut(refused, "\n")
		for _, found := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(refused, -1) {
			t.Run(kind.Backend+"/"+found[1], func(t *testing.T) {
				settings := map[string]any{}
				for required := range kind.Locating {
					settings[required] = "canary"
				}
				if name := found[1]; name == strings.ToUpper(name) {
					t.Setenv(name, "canary")
				} else {
					settings[name] = "canary"
				}
				_, _, err := Beside(cli.Backend{Type: kind.Backend, Settings: settings})
				if err == nil || !strings.Contains(err.Error(), found[1]) || strings.Contains(err.Error(), "canary") {
					t.Error(err)
				}
			})
		}
	}
	described, err := filepath.Glob(filepath.Join("..", "store", "*", "README.md"))
	if folder := 1; err != nil || len(described) != len(kinds())+folder {
		t.Errorf("%d READMEs for %d kinds of stores, and the folder: %v", len(described), len(kinds()), err)
	}
}
