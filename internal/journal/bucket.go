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

	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// maxReads bounds how many entries are read at once.
const maxReads = 16

// bucket keeps each entry in an object named PREFIX/ID.json of an S3-compatible
// store that supports conditional writes.
type bucket struct {
	client       minio.Core
	name, prefix string
	transport    http.RoundTripper
	ahead        atomic.Int64 // of the store's clock

	probe    sync.Mutex
	probed   bool
	probeErr error
}

// openBucket reads the credentials from the standard AWS environment, shared
// files, web identity, container and instance roles, in this order.
func openBucket(l Location) (*bucket, error) {
	transport, err := minio.DefaultTransport(l.Secure)
	if err != nil {
		return nil, err
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
func (b *bucket) dead(e *entry) bool          { return e.Sender.ended() }
func (b *bucket) close()                      {}

func (b *bucket) object(id string) string { return b.prefix + id + suffix }

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
			e, err := b.read(ctx, &entry{id: id})
			if errors.Is(err, errDamaged) {
				e, err = &entry{id: id, written: object.LastModified, damage: err}, nil
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

func (b *bucket) read(ctx context.Context, e *entry) (*entry, error) {
	object, info, _, err := b.client.GetObject(ctx, b.name, b.object(e.id), minio.GetObjectOptions{})
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
	fresh, err := decodeEntry(e.id, text)
	if err != nil {
		return nil, err
	}
	fresh.written, fresh.version = info.LastModified, info.ETag
	return fresh, nil
}

func (b *bucket) write(ctx context.Context, e *entry) error { return b.put(ctx, e, "") }

// put writes the object; with a version, only if the object still has it.
func (b *bucket) put(ctx context.Context, e *entry, version string) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	options := minio.PutObjectOptions{ContentType: "application/json"}
	if version != "" {
		options.SetMatchETag(version)
	}
	for {
		info, err := b.client.Client.PutObject(ctx, b.name, b.object(e.id), bytes.NewReader(text), int64(len(text)), options)
		switch {
		case err == nil:
			e.written, e.version = b.now(), info.ETag
			return nil
		case statusOf(err) != http.StatusConflict: // another write at the same time: the store asks to try again
			return err
		}
		if err := sleep.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func statusOf(err error) int {
	var response minio.ErrorResponse
	if !errors.As(err, &response) {
		return 0
	}
	return response.StatusCode
}

func (b *bucket) claim(ctx context.Context, e *entry, run Run) (bool, error) {
	if err := b.checkConditions(ctx); err != nil {
		return false, err
	}
	claimed := *e
	claimed.Owner, claimed.Nonce, claimed.SentAt = run, newID(), e.sent().UnixMilli() // the write changes the object's time
	err := b.put(ctx, &claimed, e.version)
	if statusOf(err) == http.StatusPreconditionFailed { // our first attempt may have arrived although its response was lost
		fresh, readErr := b.read(ctx, e)
		switch {
		case readErr != nil || fresh == nil:
			return false, readErr
		case fresh.Nonce == claimed.Nonce:
			claimed, err = *fresh, nil
		case fresh.version != e.version:
			return false, nil
		}
	}
	switch {
	case statusOf(err) == http.StatusNotFound:
		return false, nil
	case err != nil:
		return false, err
	}
	*e = claimed
	return true, nil
}

var errUnconditional = errors.New("the store ignores conditional writes (If-Match), so two runs could take over the same job")

// checkConditions detects a store that ignores the condition of a write, before
// the first claim relies on it.
func (b *bucket) checkConditions(ctx context.Context) error {
	b.probe.Lock()
	defer b.probe.Unlock()
	if b.probed {
		return b.probeErr
	}
	probe := &entry{id: "probe-" + newID()}
	err := b.put(ctx, probe, "")
	if err != nil {
		return err
	}
	err = b.put(ctx, probe, strings.Repeat("0", 32))
	removed := b.remove(ctx, probe)
	switch {
	case err == nil:
		b.probeErr = errUnconditional
	case statusOf(err) != http.StatusPreconditionFailed:
		return err
	case removed != nil:
		return removed
	}
	b.probed = true
	return b.probeErr
}

func (b *bucket) remove(ctx context.Context, e *entry) error {
	err := b.client.RemoveObject(ctx, b.name, b.object(e.id), minio.RemoveObjectOptions{})
	if statusOf(err) == http.StatusNotFound {
		return nil
	}
	return err
}
