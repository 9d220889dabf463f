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
	"net/url"
	"strings"

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
	action := map[string]string{"read": "GetObject", "write": "PutObject"}[op]
	if action == "" {
		return fmt.Sprintf(policy, "ListBucket", b.name)
	}
	return fmt.Sprintf(policy, action, b.name+"/"+prefix+"*")
}

// never is the hash of no text that anybody knows.
func (b *s3Bucket) never() Version { return `"00000000000000000000000000000000"` }

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
		o.HTTPClient = sameHost{o.HTTPClient}
	})
	if client.Options().Region == "" {
		return nil, errors.New("no region is known: set it in the backend, as ?region= in journal.url, or in AWS_REGION")
	}
	return &s3Objects{b, client}, checkEndpoint(aws.ToString(client.Options().BaseEndpoint)) // a profile may have one, too
}

// sameHost refuses what another host responds, to which a redirect led.
type sameHost struct{ client s3.HTTPClient }

func (h sameHost) Do(request *http.Request) (*http.Response, error) {
	response, err := h.client.Do(request)
	if err == nil && response.Request != nil {
		if at := response.Request.URL; at.Host != request.URL.Host || at.Scheme != request.URL.Scheme {
			_ = response.Body.Close()
			return nil, fmt.Errorf("the store redirected to another host: %q", at.Host)
		}
	}
	return response, err
}

type s3Objects struct {
	*s3Bucket

	client *s3.Client
}

func (o *s3Objects) list(ctx context.Context, prefix string) iter.Seq2[object, error] {
	return func(yield func(object, error) bool) {
		pages := s3.NewListObjectsV2Paginator(o.client, &s3.ListObjectsV2Input{Bucket: &o.name, Prefix: &prefix})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err == nil && (aws.ToString(page.Name) == "" || aws.ToBool(page.IsTruncated) && aws.ToString(page.NextContinuationToken) == "") {
				err = errors.New("the response is not a whole listing") // a proxy's perhaps; not an empty journal
			}
			if err != nil {
				yield(object{}, s3Error(err))
				return
			}
			for _, c := range page.Contents {
				if !yield(object{aws.ToString(c.Key), Listed{quoted(aws.ToString(c.ETag)), aws.ToTime(c.LastModified)}}, nil) {
					return
				}
			}
		}
	}
}

func (o *s3Objects) get(ctx context.Context, key string) (io.ReadCloser, Version, error) {
	object, err := o.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &o.name, Key: &key})
	if err != nil {
		return nil, "", s3Error(err)
	}
	return object.Body, quoted(aws.ToString(object.ETag)), nil
}

// put sends a checksum, which a bucket with Object Lock demands.
func (o *s3Objects) put(ctx context.Context, key string, body []byte, ifVersion Version) (Version, error) {
	input := &s3.PutObjectInput{
		Bucket: &o.name, Key: &key, Body: bytes.NewReader(body), ContentType: aws.String("application/json"),
		ACL: o.acl, ServerSideEncryption: o.encryption, SSEKMSKeyId: o.kmsKey,
	}
	if ifVersion == "" {
		input.IfNoneMatch = aws.String("*")
	} else {
		input.IfMatch = aws.String(string(ifVersion))
	}
	if !o.skipChecksum {
		sum := sha256.Sum256(body)
		input.ChecksumSHA256 = aws.String(base64.StdEncoding.EncodeToString(sum[:]))
	}
	written, err := o.client.PutObject(ctx, input)
	if response, ok := errors.AsType[smithy.APIError](err); ok {
		switch response.ErrorCode() {
		case "PreconditionFailed", "ConditionalRequestConflict": // the latter: another write is in progress
			return "", ErrConflict
		}
	}
	if err != nil {
		return "", s3Error(err)
	}
	return quoted(aws.ToString(written.ETag)), nil
}

func (o *s3Objects) isDenied(err error) bool {
	response, ok := errors.AsType[s3Response](err)
	return ok && response.ErrorCode() == "AccessDenied"
}

// s3Error believes the store's own code only: a proxy's 404 has none.
func s3Error(err error) error {
	if response, ok := errors.AsType[smithy.APIError](err); ok {
		if response.ErrorCode() == "NoSuchKey" {
			return errNoObject
		}
		return s3Response{response}
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// s3Response says in a line what the SDK's error says in many.
type s3Response struct{ smithy.APIError }

func (r s3Response) Error() string {
	hint := map[string]string{"NoSuchBucket": "the bucket does not exist", "PermanentRedirect": "set region to that of the bucket"}
	said := cmp.Or(hint[r.ErrorCode()], strings.TrimRight(r.ErrorMessage(), "."))
	return strings.TrimSuffix("the store responded with "+r.ErrorCode()+": "+said, ": ")
}
