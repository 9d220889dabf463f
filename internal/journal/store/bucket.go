// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// bucket keeps each entry in an object of an S3-compatible store whose reads and
// listings show each write at once.
type bucket struct {
	client       *minio.Client
	name, prefix string
}

// openBucket reads the credentials from the standard AWS environment, shared
// files, web identity, container and instance roles, in this order.
func openBucket(l Location, scope string, transport http.RoundTripper) (*bucket, error) {
	client, err := minio.New(cmp.Or(l.Endpoint, "s3.amazonaws.com"), &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: &http.Client{Transport: transport}},
		}),
		Secure:    l.Secure,
		Region:    cmp.Or(l.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")),
		Transport: transport,
	})
	return &bucket{client, l.Bucket, l.Prefix + scope + "/"}, err
}

func (b *bucket) String() string         { return "s3://" + b.name + "/" + b.prefix }
func (b *bucket) Where(name Name) string { return "s3://" + b.name + "/" + b.object(name) }
func (b *bucket) object(name Name) string {
	return b.prefix + name.String() + suffix
}

func (b *bucket) List(ctx context.Context, prefix string) (found []Name, _ error) {
	for object := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix + prefix, Recursive: true}) {
		if object.Err != nil {
			return nil, object.Err
		}
		name, ok, err := ofFile(strings.TrimPrefix(object.Key, b.prefix))
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, name)
		}
	}
	return found, nil
}

func (b *bucket) Read(ctx context.Context, name Name) (*Entry, error) {
	core := minio.Core{Client: b.client}
	object, info, _, err := core.GetObject(ctx, b.name, b.object(name), minio.GetObjectOptions{})
	if hasNoEntry(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = object.Close() }()
	text, err := io.ReadAll(io.LimitReader(object, maxEntry))
	if err != nil {
		return nil, err
	}
	return decode(text, info.LastModified), nil
}

func (b *bucket) Write(ctx context.Context, name Name, e *Entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = b.client.PutObject(ctx, b.name, b.object(name), bytes.NewReader(text), int64(len(text)),
		minio.PutObjectOptions{ContentType: "application/json"})
	return err
}

func (b *bucket) Remove(ctx context.Context, name Name) error {
	err := b.client.RemoveObject(ctx, b.name, b.object(name), minio.RemoveObjectOptions{})
	if hasNoEntry(err) {
		return nil
	}
	return err
}

// hasNoEntry reports whether the store said that there is no such object. The client claims that of any
// 404 without such a response too, such as a proxy's; XMLName shows that there was one.
func hasNoEntry(err error) bool {
	response, ok := errors.AsType[minio.ErrorResponse](err)
	return ok && response.Code == minio.NoSuchKey && response.XMLName.Local != ""
}
