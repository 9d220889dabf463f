// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package s3 keeps texts in a bucket of Amazon S3 or of a store with its interface.
package s3

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
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

// cloud is a bucket of Amazon S3 or of a store with its interface, reached as the s3 backend does.
type cloud struct {
	name string
	aws  awsSettings

	endpoint                string
	pathStyle, skipChecksum bool
	acl                     types.ObjectCannedACL
	encryption              types.ServerSideEncryption
	kmsKey                  *string
}

// Beside is where the s3 backend keeps a state.
func Beside(s *settings.Settings) (bucket.Cloud, string, error) {
	s.Ignore("workspace_key_prefix")
	name, nameErr := s.Required("bucket")
	key, keyErr := s.Required("key")
	c, err := newCloud(name, s)
	return c, key + "." + settings.Beside, errors.Join(nameErr, keyErr, err)
}

// Named is where a URL leads.
func Named(host, path string, s *settings.Settings) (bucket.Cloud, string, error) {
	c, err := newCloud(host, s)
	c.pathStyle = c.endpoint != "" // most stores other than AWS have no host name for each bucket
	return c, path, err
}

func newCloud(name string, s *settings.Settings) (*cloud, error) {
	c := &cloud{
		name:         name,
		pathStyle:    s.Is("use_path_style", false) || s.Is("force_path_style", false),
		skipChecksum: s.Is("skip_s3_checksum", false),
		acl:          types.ObjectCannedACL(s.Text("acl")),
	}
	if s.Is("encrypt", false) {
		c.encryption = types.ServerSideEncryptionAes256
		if key := s.Text("kms_key_id"); key != "" {
			c.encryption, c.kmsKey = types.ServerSideEncryptionAwsKms, &key
		}
	}
	s.Ignore("kms_key_id", "use_lockfile", "dynamodb_table", "dynamodb_endpoint", "state_tags", "lock_tags")
	var err error
	if c.endpoint, err = c.aws.read(s); err != nil {
		return c, err
	}
	return c, errors.Join(s.Refuse("AWS_SSE_CUSTOMER_KEY"), settings.CheckEndpoint(c.endpoint))
}

func (c *cloud) String() string { return "s3://" + c.name }

func (c *cloud) Grant(op, prefix string) string {
	const policy = `{"Effect": "Allow", "Action": "s3:%s", "Resource": "arn:aws:s3:::%s"}`
	action := map[string]string{"read": "GetObject", "write": "PutObject"}[op]
	if action == "" {
		return fmt.Sprintf(policy, "ListBucket", c.name)
	}
	return fmt.Sprintf(policy, action, c.name+"/"+prefix+"*")
}

// Never is the hash of no text that anybody knows.
func (c *cloud) Never() store.Version { return `"00000000000000000000000000000000"` }

func (c *cloud) Connect(ctx context.Context, network http.RoundTripper) (bucket.Objects, error) {
	config, err := c.aws.config(ctx, network)
	if err != nil {
		return nil, err
	}
	client := awss3.NewFromConfig(config, func(o *awss3.Options) {
		if c.endpoint != "" {
			o.BaseEndpoint = &c.endpoint
		}
		o.UsePathStyle = c.pathStyle
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired // Put has its own
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		if o.BaseEndpoint != nil {
			o.Region = cmp.Or(o.Region, "us-east-1")
		}
		o.HTTPClient = sameHost{o.HTTPClient}
	})
	if client.Options().Region == "" {
		return nil, errors.New("no region is known: set it in the backend, as ?region= in journal.url, or in AWS_REGION")
	}
	return &objects{c, client}, settings.CheckEndpoint(aws.ToString(client.Options().BaseEndpoint)) // a profile may have one, too
}

// sameHost refuses what another host responds, to which a redirect led.
type sameHost struct{ client awss3.HTTPClient }

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

type objects struct {
	*cloud

	client *awss3.Client
}

func (o *objects) List(ctx context.Context, prefix string) iter.Seq2[bucket.Object, error] {
	return func(yield func(bucket.Object, error) bool) {
		pages := awss3.NewListObjectsV2Paginator(o.client, &awss3.ListObjectsV2Input{Bucket: &o.name, Prefix: &prefix})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err == nil && (aws.ToString(page.Name) == "" || aws.ToBool(page.IsTruncated) && aws.ToString(page.NextContinuationToken) == "") {
				err = errors.New("the response is not a whole listing") // a proxy's perhaps; not an empty journal
			}
			if err != nil {
				yield(bucket.Object{}, s3Error(err))
				return
			}
			for _, found := range page.Contents {
				if !yield(bucket.Object{Key: aws.ToString(found.Key), Listed: store.Listed{
					Version: bucket.Quoted(aws.ToString(found.ETag)), Written: aws.ToTime(found.LastModified),
				}}, nil) {
					return
				}
			}
		}
	}
}

func (o *objects) Get(ctx context.Context, key string) (io.ReadCloser, store.Version, error) {
	object, err := o.client.GetObject(ctx, &awss3.GetObjectInput{Bucket: &o.name, Key: &key})
	if err != nil {
		return nil, "", s3Error(err)
	}
	return object.Body, bucket.Quoted(aws.ToString(object.ETag)), nil
}

// Put sends a checksum, which a bucket with Object Lock demands.
func (o *objects) Put(ctx context.Context, key string, body []byte, ifVersion store.Version) (store.Version, error) {
	input := &awss3.PutObjectInput{
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
			return "", store.ErrConflict
		}
	}
	if err != nil {
		return "", s3Error(err)
	}
	return bucket.Quoted(aws.ToString(written.ETag)), nil
}

func (o *objects) IsDenied(err error) bool {
	response, ok := errors.AsType[s3Response](err)
	return ok && response.ErrorCode() == "AccessDenied"
}

// s3Error believes the store's own code only: a proxy's 404 has none.
func s3Error(err error) error {
	if response, ok := errors.AsType[smithy.APIError](err); ok {
		if response.ErrorCode() == "NoSuchKey" {
			return bucket.ErrNoObject
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
