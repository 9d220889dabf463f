// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// s3Bucket is a bucket of Amazon S3 or of a store with its interface, reached as the s3 backend does.
type s3Bucket struct {
	name string
	aws  awsSettings

	endpoint                string
	pathStyle, skipChecksum bool
	acl                     types.ObjectCannedACL
	encryption              types.ServerSideEncryption
	kmsKey                  *string
}

func newS3(name string, s *settings) (*s3Bucket, error) {
	b := &s3Bucket{
		name:         name,
		pathStyle:    s.is("use_path_style", false) || s.is("force_path_style", false),
		skipChecksum: s.is("skip_s3_checksum", false),
		acl:          types.ObjectCannedACL(s.text("acl")),
	}
	if s.is("encrypt", false) {
		b.encryption = types.ServerSideEncryptionAes256
		if key := s.text("kms_key_id"); key != "" {
			b.encryption, b.kmsKey = types.ServerSideEncryptionAwsKms, &key
		}
	}
	s.ignore("kms_key_id", "use_lockfile", "dynamodb_table", "dynamodb_endpoint", "state_tags", "lock_tags")
	var err error
	if b.endpoint, err = b.aws.read(s); err != nil {
		return nil, err
	}
	return b, errors.Join(refuse("AWS_SSE_CUSTOMER_KEY"), checkEndpoint(b.endpoint))
}

func (b *s3Bucket) String() string { return "s3://" + b.name }

func (b *s3Bucket) grant(op, prefix string) string {
	const policy = `{"Effect": "Allow", "Action": "s3:%s", "Resource": "arn:aws:s3:::%s"}`
	action := map[string]string{"read": "GetObject", "write": "PutObject", "remove": "DeleteObject"}[op]
	if action == "" {
		return fmt.Sprintf(policy, "ListBucket", b.name)
	}
	return fmt.Sprintf(policy, action, b.name+"/"+prefix+"*")
}

func (b *s3Bucket) connect(ctx context.Context, network http.RoundTripper) (objects, error) {
	config, err := b.aws.config(ctx, network)
	if err != nil {
		return nil, err
	}
	client := s3.NewFromConfig(config, func(o *s3.Options) {
		if b.endpoint != "" {
			o.BaseEndpoint = &b.endpoint
		}
		o.UsePathStyle = b.pathStyle
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired // put has its own
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		if o.BaseEndpoint != nil {
			o.Region = cmp.Or(o.Region, "us-east-1")
		}
	})
	return &s3Objects{b, client}, checkEndpoint(aws.ToString(client.Options().BaseEndpoint)) // a profile may have one, too
}

type s3Objects struct {
	*s3Bucket

	client *s3.Client
}

func (o *s3Objects) list(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		pages := s3.NewListObjectsV2Paginator(o.client, &s3.ListObjectsV2Input{Bucket: &o.name, Prefix: &prefix})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err == nil && aws.ToString(page.Name) == "" {
				err = errors.New("the response is not a listing") // a proxy's perhaps; not an empty journal
			}
			if err != nil {
				yield("", err)
				return
			}
			for _, object := range page.Contents {
				if !yield(aws.ToString(object.Key), nil) {
					return
				}
			}
		}
	}
}

func (o *s3Objects) get(ctx context.Context, key string) (io.ReadCloser, time.Time, error) {
	object, err := o.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &o.name, Key: &key})
	if err != nil {
		return nil, time.Time{}, withoutObject(err)
	}
	return object.Body, aws.ToTime(object.LastModified), nil
}

// put sends a checksum, which a bucket with Object Lock demands.
func (o *s3Objects) put(ctx context.Context, key string, body []byte) error {
	input := &s3.PutObjectInput{
		Bucket: &o.name, Key: &key, Body: bytes.NewReader(body), ContentType: aws.String("application/json"),
		ACL: o.acl, ServerSideEncryption: o.encryption, SSEKMSKeyId: o.kmsKey,
	}
	if !o.skipChecksum {
		sum := sha256.Sum256(body)
		input.ChecksumSHA256 = aws.String(base64.StdEncoding.EncodeToString(sum[:]))
	}
	_, err := o.client.PutObject(ctx, input)
	return err
}

func (o *s3Objects) remove(ctx context.Context, key string) error {
	_, err := o.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &o.name, Key: &key})
	return withoutObject(err)
}

func (o *s3Objects) isDenied(err error) bool { return hasCode(err, "AccessDenied") }

// withoutObject believes the store's own code only: a proxy's 404 has none.
func withoutObject(err error) error {
	if hasCode(err, "NoSuchKey") {
		return errNoObject
	}
	return err
}

func hasCode(err error, code string) bool {
	response, ok := errors.AsType[smithy.APIError](err)
	return ok && response.ErrorCode() == code
}
