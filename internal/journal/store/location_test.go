// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParseURL(t *testing.T) {
	dir := t.TempDir()
	s3 := func(l Location, at s3Bucket) Location {
		at.name, at.pathStyle = "bucket", at.endpoint != ""
		l.cloud = &at
		return l
	}
	gs := func(name, base string, l Location) Location {
		l.cloud = &gcsBucket{name: name, base: base}
		return l
	}
	setGCS(t, nil)
	azure := func(l Location, endpoint string) Location {
		l.cloud = &azureContainer{account: "devstate", name: "ci-state", endpoint: endpoint}
		return l
	}
	opts := cmp.Options{cmp.AllowUnexported(Location{}, s3Bucket{}, gcsBucket{}, azureContainer{}), cmpopts.IgnoreTypes(awsSettings{}, azureSettings{})}
	for _, test := range []struct {
		text string
		want Location
		err  error
	}{
		{text: filepath.Join(dir, "a#b?c d") + string(filepath.Separator), want: Location{Folder: filepath.Join(dir, "a#b?c d")}},
		{text: "S3://bucket//a/b//", want: s3(Location{Prefix: "a/b/"}, s3Bucket{})},
		{text: "s3://bucket/a%20b?region=eu-central-1", want: s3(Location{Prefix: "a b/"}, s3Bucket{})},
		{text: "s3://bucket?endpoint=https://s3.example.com:9000/", want: s3(Location{}, s3Bucket{endpoint: "https://s3.example.com:9000/"})},
		{text: "s3://bucket?endpoint=http://[::1]:9000", want: s3(Location{}, s3Bucket{endpoint: "http://[::1]:9000"})},
		{text: "s3://bucket?endpoint=http://localhost&region=x", want: s3(Location{}, s3Bucket{endpoint: "http://localhost"})},
		{text: "s3://bucket?state=app%2Fprod", want: s3(Location{State: "app/prod"}, s3Bucket{})},
		{text: "gs://my_bucket//a/b//?state=app", want: gs("my_bucket", "https://storage.googleapis.com", Location{Prefix: "a/b/", State: "app"})},
		{text: "GS://b?endpoint=http://[::1]:9000/", want: gs("b", "http://[::1]:9000", Location{})},
		{text: "gs://b?endpoint=https://g.example.com/x/", want: gs("b", "https://g.example.com/x", Location{})},
		{text: "gs://b?region=canary", err: errURL},
		{text: "gs://b?storage_custom_endpoint=https://canary", err: errURL},
		{text: "gs://b?endpoint=http://g.example.com", err: errEndpoint},
		{text: "azblob://devstate/ci-state", want: azure(Location{}, "https://devstate.blob.core.windows.net")},
		{text: "azblob://devstate/ci-state//a/b/?state=app&endpoint=http://127.0.0.1:10000/devstate/",
			want: azure(Location{Prefix: "a/b/", State: "app"}, "http://127.0.0.1:10000/devstate")},
		{text: filepath.Join(dir, "a") + "?state=app", want: Location{Folder: filepath.Join(dir, "a"), State: "app"}},
		{text: filepath.Join(dir, "a") + "?state=", err: errURL},
		{text: "", err: errURL},
		{text: "https://bucket", err: errURL},
		{text: "s3://%zz", err: errURL},
		{text: "s3:///a", err: errURL},
		{text: "s3://user:canary@bucket", err: errURL},
		{text: "s3://bucket:", err: errURL},
		{text: "s3://bucket/canary#", err: errURL},
		{text: "s3://bucket?secret_key=canary", err: errURL},
		{text: "s3://bucket?region=", err: errURL},
		{text: "s3://bucket?region=a&region=b", err: errURL},
		{text: "s3://bucket?region=%zz", err: errURL},
		{text: "s3://bucket?endpoint=http://127.0.0.1.example.com", err: errEndpoint},
		{text: "s3://bucket?endpoint=ftp://localhost", err: errEndpoint},
		{text: "s3://bucket?endpoint=https://user:canary@s3.example.com", err: errEndpoint},
		{text: "s3://bucket?endpoint=https://s3.example.com%3Fa", err: errEndpoint},
		{text: "s3://bucket?endpoint=https://s3.example.com%23a", err: errEndpoint},
		{text: "s3://bucket?endpoint=https://", err: errEndpoint},
		{text: "s3://bucket?endpoint=%25zz", err: errEndpoint},
		{text: "azblob://devstate/ci-state?endpoint=http://canary.example.com", err: errEndpoint},
		{text: "azblob://devstate/ci-state?region=canary", err: errURL},
		{text: "azblob://devstate/ci-state?access_key=canary", err: errURL},
		{text: "azblob://dev.canary/ci-state", err: errAzureNames},
		{text: "azblob://devstate", err: errAzureNames},
	} {
		t.Run(test.text, func(t *testing.T) {
			got, err := ParseURL(test.text)
			if !errors.Is(err, test.err) || err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v, want %v", err, test.err)
			}
			if diff := cmp.Diff(test.want, got, opts); diff != "" {
				t.Error(diff)
			}
		})
	}
}
