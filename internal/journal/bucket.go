// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

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
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/sync/errgroup"
)

// maxReads bounds how many entries are read at once.
const maxReads = 16

// bucket keeps each entry in an object named PREFIX/ID.json of an S3-compatible
// store whose reads and listings show each write at once.
type bucket struct {
	client       minio.Core
	name, prefix string
	transport    http.RoundTripper
	ahead        atomic.Int64 // of the store's clock
}

// openBucket reads the credentials from the standard AWS environment, shared
// files, web identity, container and instance roles, in this order.
func openBucket(l Location, transport http.RoundTripper) (_ *bucket, err error) {
	if transport == nil {
		if transport, err = minio.DefaultTransport(l.Secure); err != nil {
			return nil, err
		}
	}
	b := &bucket{name: l.Bucket, prefix: l.Prefix, transport: transport}
	b.client.Client, err = minio.New(cmp.Or(l.Endpoint, "s3.amazonaws.com"), &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: &http.Client{Transport: transport}},
		}),
		Secure:    l.Secure,
		Region:    cmp.Or(l.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")),
		Transport: b,
	})
	return b, err
}

// RoundTrip reads the store's clock from the Date header of its responses.
func (b *bucket) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.transport.RoundTrip(req)
	if err == nil {
		if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			b.ahead.Store(int64(time.Until(date)))
		}
	}
	return resp, err
}

func (b *bucket) String() string { return "s3://" + b.name + "/" + b.prefix }
func (b *bucket) now() time.Time {
	return time.Now().Round(0).Add(time.Duration(b.ahead.Load()))
}
func (b *bucket) pollInterval() time.Duration { return time.Second }
func (b *bucket) where(id string) string      { return "s3://" + b.name + "/" + b.object(id) }
func (b *bucket) object(id string) string     { return b.prefix + id + suffix }

func (b *bucket) load(ctx context.Context) ([]*entry, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxReads)
	var mu sync.Mutex
	var entries []*entry
	var listErr error
	for object := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true}) {
		if object.Err != nil {
			listErr = object.Err
			break
		}
		id, isEntry := strings.CutSuffix(strings.TrimPrefix(object.Key, b.prefix), suffix)
		if !isEntry || !validID(id) {
			continue
		}
		group.Go(func() error {
			e, err := b.read(ctx, id)
			if errors.Is(err, errDamaged) {
				e, err = &entry{id: id, SentAt: object.LastModified.UnixMilli(), damage: err}, nil
			}
			if err != nil || e == nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			entries = append(entries, e)
			return nil
		})
	}
	if err := group.Wait(); err != nil { // the cause, if it stopped the listing too
		listErr = err
	}
	return entries, listErr
}

func (b *bucket) read(ctx context.Context, id string) (*entry, error) {
	object, _, _, err := b.client.GetObject(ctx, b.name, b.object(id), minio.GetObjectOptions{})
	if statusOf(err) == http.StatusNotFound {
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
	return decodeEntry(id, text)
}

func (b *bucket) write(ctx context.Context, e *entry) error {
	e.SentAt = cmp.Or(e.SentAt, b.now().UnixMilli())
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = b.client.Client.PutObject(ctx, b.name, b.object(e.id), bytes.NewReader(text), int64(len(text)),
		minio.PutObjectOptions{ContentType: "application/json"})
	return err
}

// remove cannot tell whether the object existed: S3 deletes what does not exist.
func (b *bucket) remove(ctx context.Context, id string) (existed bool, _ error) {
	err := b.client.RemoveObject(ctx, b.name, b.object(id), minio.RemoveObjectOptions{})
	if statusOf(err) == http.StatusNotFound {
		err = nil
	}
	return true, err
}

func statusOf(err error) int {
	var response minio.ErrorResponse
	if !errors.As(err, &response) {
		return 0
	}
	return response.StatusCode
}
