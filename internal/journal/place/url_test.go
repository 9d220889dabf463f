// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package place

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/azblob"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

func TestParseURL(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct{ text, want, state string }{
		{text: filepath.Join(dir, "a#b?c d") + string(filepath.Separator), want: filepath.Join(dir, "a#b?c d")},
		{text: filepath.Join(dir, "a") + "?state=app", want: filepath.Join(dir, "a"), state: "app"},
		{text: "S3://bucket//a/b//", want: "s3://bucket/a/b/"},
		{text: "s3://bucket/a%20b?region=eu-central-1", want: "s3://bucket/a b/"},
		{text: "s3://bucket?endpoint=https://s3.example.com:9000/", want: "s3://bucket/"},
		{text: "s3://bucket?endpoint=http://localhost&region=x", want: "s3://bucket/"},
		{text: "s3://bucket?state=app%2Fprod", want: "s3://bucket/", state: "app/prod"},
		{text: "s3://bucket?profile=p&acl=private&encrypt=true&kms_key_id=k&skip_s3_checksum=true&use_path_style=false", want: "s3://bucket/"},
		{text: "GS://my_bucket//a/b//?state=app", want: "gs://my_bucket/a/b/", state: "app"},
		{text: "gs://b?kms_encryption_key=projects/p/locations/l/keyRings/r/cryptoKeys/k", want: "gs://b/"},
		{text: "azblob://devstate/ci-state//a/b/?state=app&endpoint=http://127.0.0.1:10000/devstate/",
			want: "azblob://devstate/ci-state/a/b/", state: "app"},
		{text: "azblob://devstate/ci-state?endpoint=http://[::1]:9000/", want: "azblob://devstate/ci-state/"},
	} {
		if got, err := ParseURL(test.text); err != nil || got.String() != test.want || got.State != test.state {
			t.Errorf("%s: got %s of %q, %v, want %s of %q", test.text, got, got.State, err, test.want, test.state)
		}
	}
	for want, texts := range map[error][]string{
		errURL: {
			"", "https://bucket", "s3://%zz", "s3:///a", "s3://user:canary@bucket", "s3://bucket:", "s3://bucket/canary#", filepath.Join(dir, "a") + "?state=",
			"gs://b?endpoint=https://canary.example.com", "gs://b?region=canary", "s3://bucket?region=", "s3://bucket?region=a&region=b", "s3://bucket?region=%zz",
		},
		errInvisible: {
			filepath.Join(dir, "a") + " ", filepath.Join(dir, "a", "\u200bcanary"), filepath.Join(dir, "a") + " ?state=app",
			"s3://bucket/a%0Acanary", "s3://bucket/a%20", "s3://bucket/a /b", "s3://bucket?state=+app",
		},
		settings.ErrEndpoint: {
			"s3://bucket?endpoint=http://127.0.0.1.example.com", "s3://bucket?endpoint=ftp://localhost", "s3://bucket?endpoint=https://user:canary@s3.example.com",
			"s3://bucket?endpoint=https://s3.example.com%3Fa", "s3://bucket?endpoint=https://s3.example.com%23a", "s3://bucket?endpoint=https://",
			"s3://bucket?endpoint=%25zz", "azblob://devstate/ci-state?endpoint=http://canary@localhost",
		},
		azblob.ErrEmulator: {
			"azblob://devstate/ci-state?endpoint=https://localhost.canary", "azblob://devstate/ci-state?endpoint=http://localhost@canary",
			"azblob://devstate/ci-state?endpoint=https://canary.example.com", "azblob://devstate/ci-state?endpoint=https://%25zz",
		},
		azblob.ErrNames: {"azblob://dev.canary/ci-state", "azblob://devstate"},
	} {
		for _, text := range texts {
			if got, err := ParseURL(text); !errors.Is(err, want) || strings.Contains(err.Error(), "canary") || got.String()+got.State != "" {
				t.Errorf("%s: got %s, %v, want %v", text, got, err, want)
			}
		}
	}
	for _, example := range Examples() {
		where, query, _ := strings.Cut(example, "?")
		got, err := ParseURL(where + "?state=app&" + query)
		if err != nil || got.String() != where+"/" || got.State != "app" {
			t.Errorf("%s: got %s of %q, %v", example, got, got.State, err)
		}
		for _, secret := range []string{"access_key", "access_token", "account_key", "client_secret", "credentials", "password", "sas_token", "secret_key", "token"} {
			if _, err := ParseURL(where + "?" + secret + "=canary&" + query); !errors.Is(err, errURL) {
				t.Errorf("%s, with %s: %v", example, secret, err)
			}
		}
	}
}

// Whatever a person writes is refused, or leads to one place, which its name shows.
func FuzzParseURL(f *testing.F) {
	for _, example := range append(Examples(), "/a/b?state=c", "s3://b/p?endpoint=https://s3.example.com&state=a%2Fb", "azblob://acc/con?endpoint=http://[::1]:1") {
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
		if l.cloud != nil && l.Prefix != "" && (l.Prefix[0] == '/' || !strings.HasSuffix(l.Prefix, "/")) {
			t.Errorf("%q: prefix %q", text, l.Prefix)
		}
	})
}

// The first of each row is canonical, and stays as it is: journals have it in their scopes. The rest of a row are other
// spellings of it, and each row is another service.
func TestCanonicalURL(t *testing.T) {
	for _, spellings := range [][]string{
		{"https://api.example.com", "HTTPS://API.Example.com", "https://api.example.com:443", "https://api.example.com:", "https://api.example.com.",
			"https://API.example.com.:443//", "https://api.example.com/", "https://api.example.com/./", "https://api.example.com/a/.."},
		{"https://api.example.com/v1", "https://api.example.com/v1/", "https://api.example.com/v1//", "https://api.example.com:443/a/../v1/."},
		{"https://api.example.com/V1"},
		{"https://api.example.com//v1"}, // servers may tell these apart
		{"https://api.example.com/a%2Fb", "https://API.example.com/a%2Fb/"},
		{"https://api.example.com/a/b"},
		{"https://api.example.com/a%2F"},
		{"https://api.example.com/a"},
		{"https://api.example.com:80"},
		{"http://api.example.com", "http://api.example.com:80"},
		{"http://api.example.com:443"},
		{"https://xn--bcher-kva.example", "https://bücher.example", "https://BÜCHER.example.", "https://XN--BCHER-KVA.example:443", "https://b%C3%BCcher.example",
			"https://bu\u0308cher\u3002example\u3002"}, // decomposed, with ideographic full stops
		{"https://under_score.example", "https://Under_Score.example.:443"},
		{"https://a--b---c.example", "https://A--B---C.example"},
		{"http://127.0.0.1:8787", "http://127.0.0.1.:8787/"},
		{"http://localhost:8787", "http://LOCALHOST:8787"},
		{"http://[::1]", "http://[0:0::1]:80"},
		{"http://[::ffff:127.0.0.1]:8787", "http://[::FFFF:7f00:1]:8787"},
		{"http://[fe80::1%25eth0]:8787", "http://[FE80::1%25eth0]:8787"},
		{"https://[::ffff:1]/c", "https://[::FFFF:1]:443/a%2Fb/../c"},
		{"http://0", "http://0.."},
	} {
		for _, spelling := range spellings {
			u, err := url.Parse(spelling)
			if err != nil {
				t.Fatal(err)
			}
			if got := CanonicalURL(u).String(); got != spellings[0] {
				t.Errorf("%s is %s, want %s", spelling, got, spellings[0])
			}
		}
	}
}
