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
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
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

	endpoint  string // empty: that of AWS, or what the AWS SDK finds
	mayBeOpen bool   // http is allowed, as for the state
	pathStyle bool   // the bucket is in the path of a request, not in the host's name
	// pathStyleElsewhere: the same, at an endpoint: most other stores have no host name for each bucket.
	pathStyleElsewhere bool

	skipChecksum bool // for stores that refuse one
	acl          types.ObjectCannedACL
	encryption   types.ServerSideEncryption
	kmsKey       *string
}

// Kind is Amazon S3, and what is like it.
func Kind() bucket.Kind {
	return bucket.Kind{
		Backend: "s3", Beside: besideState, Scheme: "s3", Example: "s3://bucket/prefix?region=eu-central-1", AtURL: atURL,
		Parameters:    []string{"endpoint", "region", "profile", "use_path_style", "skip_s3_checksum", "acl", "encrypt", "kms_key_id"},
		StateSettings: map[string]string{"bucket": "", "key": "", "workspace_key_prefix": "env:"},
	}
}

// besideState is where the s3 backend keeps a state.
func besideState(s *settings.Settings) (bucket.Cloud, string, error) {
	s.Ignore("workspace_key_prefix", "use_lockfile", "dynamodb_table", "dynamodb_endpoint", "state_tags", "lock_tags")
	name, nameErr := s.Required("bucket")
	key, keyErr := s.Required("key")
	c := newCloud(name, s)
	c.pathStyle = s.Bool("use_path_style", s.Bool("force_path_style", false)) // the latter is the older name
	c.mayBeOpen = true
	var err error
	c.endpoint, err = c.aws.readBackend(s)
	err = errors.Join(nameErr, keyErr, settings.Refuse("AWS_SSE_CUSTOMER_KEY"), err, settings.CheckEndpoint(c.endpoint, c.mayBeOpen))
	return c, key + "." + settings.JournalName, err
}

// atURL is where a URL leads. The identity is the one that the AWS SDK finds.
func atURL(host, path string, s *settings.Settings) (bucket.Cloud, string, error) {
	c := newCloud(host, s)
	c.endpoint = s.Text("endpoint")
	c.pathStyle, c.pathStyleElsewhere = s.Bool("use_path_style", false), s.Bool("use_path_style", true)
	return c, path, settings.CheckEndpoint(c.endpoint, c.mayBeOpen)
}

// newCloud reads the settings that a URL may have, too.
func newCloud(name string, s *settings.Settings) *cloud {
	c := &cloud{name: name, skipChecksum: s.Bool("skip_s3_checksum", false), acl: types.ObjectCannedACL(s.Text("acl"))}
	key := s.Text("kms_key_id") // counts only with encrypt, as for the backend
	if s.Bool("encrypt", false) {
		c.encryption = types.ServerSideEncryptionAes256
		if key != "" {
			c.encryption, c.kmsKey = types.ServerSideEncryptionAwsKms, &key
		}
	}
	c.aws.read(s)
	return c
}

func (c *cloud) String() string { return "s3://" + c.name }

// Grant is a statement of a policy. Who may write must also read, so it allows both at once.
func (c *cloud) Grant(op, prefix string) string {
	action, resource := `"s3:ListBucket"`, c.name
	switch op {
	case "read":
		action, resource = `"s3:GetObject"`, resource+"/"+prefix+"*"
	case "write":
		action, resource = `["s3:GetObject", "s3:PutObject"]`, resource+"/"+prefix+"*"
	}
	return fmt.Sprintf(`{"Effect": "Allow", "Action": %s, "Resource": "arn:aws:s3:::%s"}`, action, resource)
}

func (c *cloud) Connect(ctx context.Context, network http.RoundTripper) (bucket.Objects, error) {
	found, err := c.aws.config(ctx, network)
	if err != nil {
		return nil, err
	}
	client := awss3.NewFromConfig(found, func(o *awss3.Options) {
		if c.endpoint != "" {
			o.BaseEndpoint = &c.endpoint
		}
		o.UsePathStyle = c.pathStyle
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired // Put has its own
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		if o.BaseEndpoint != nil {
			o.Region = cmp.Or(o.Region, "us-east-1")
			o.UsePathStyle = c.pathStyle || c.pathStyleElsewhere
			o.EndpointOptions.UseFIPSEndpoint = aws.FIPSEndpointStateDisabled // the SDK refuses both at an endpoint
			o.EndpointOptions.UseDualStackEndpoint = aws.DualStackEndpointStateDisabled
		}
		if client, ok := o.HTTPClient.(*awshttp.BuildableClient); ok { // that follows redirects of a GET, with each header
			o.HTTPClient = bucket.Client(client.GetTransport())
		}
	})
	if client.Options().Region == "" {
		return nil, errors.New("no region is known: set it in the backend, as ?region= in journal.url, or in AWS_REGION")
	}
	endpoint := aws.ToString(client.Options().BaseEndpoint) // a profile may have one, too
	return &objects{c, client}, settings.CheckEndpoint(endpoint, c.mayBeOpen)
}

type objects struct {
	*cloud

	client *awss3.Client
}

func (o *objects) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		pages := awss3.NewListObjectsV2Paginator(o.client, &awss3.ListObjectsV2Input{Bucket: &o.name, Prefix: &prefix})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err == nil && (aws.ToString(page.Name) == "" || aws.ToBool(page.IsTruncated) && aws.ToString(page.NextContinuationToken) == "") {
				err = errors.New("the response is not a whole listing") // a proxy's perhaps; not an empty journal
			}
			if err != nil {
				yield("", s3Error(err))
				return
			}
			for _, found := range page.Contents {
				if !yield(aws.ToString(found.Key), nil) {
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

// s3Error believes only the code of S3. A proxy's 404 has none, and a refusal of STS, which is
// nested in an error of S3, is about no right that the bucket's policy could grant.
func s3Error(err error) error {
	if outer, ok := errors.AsType[*smithy.OperationError](err); ok {
		if inner, ok := errors.AsType[*smithy.OperationError](outer.Err); ok {
			return inner
		}
	}
	response, ok := errors.AsType[smithy.APIError](err)
	switch {
	case !ok:
		return bucket.WithoutURL(err)
	case response.ErrorCode() == "NoSuchKey":
		return bucket.ErrNoObject
	}
	return s3Response{response}
}

// s3Response says in a line what the SDK's error says in many.
type s3Response struct{ smithy.APIError }

// Is also takes a missing right to use a KMS key for store.ErrDenied: the message names it.
func (r s3Response) Is(target error) bool {
	return target == store.ErrDenied && r.ErrorCode() == "AccessDenied"
}

func (r s3Response) Error() string {
	hint := map[string]string{"NoSuchBucket": "the bucket does not exist", "PermanentRedirect": "set region to that of the bucket"}
	said := cmp.Or(hint[r.ErrorCode()], strings.TrimRight(r.ErrorMessage(), "."))
	return strings.TrimSuffix("the store responded with "+r.ErrorCode()+": "+said, ": ")
}
