// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package s3

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/aws/smithy-go/logging"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

// awsSettings say how to reach AWS, and as whom.
type awsSettings struct {
	load     []func(*config.LoadOptions) error
	caBundle string

	stsEndpoint, stsRegion string
	role                   assumedRole // assumed with the credentials found so far
	webIdentity            assumedRole // assumed with a token
}

// assumedRole is a role as the backend's settings describe one.
type assumedRole struct {
	ARN            string            `json:"role_arn"`
	Duration       string            `json:"duration"`
	ExternalID     *string           `json:"external_id"`
	Policy         *string           `json:"policy"`
	PolicyARNs     []string          `json:"policy_arns"`
	SessionName    string            `json:"session_name"`
	SourceIdentity *string           `json:"source_identity"`
	Tags           map[string]string `json:"tags"`
	TransitiveTags []string          `json:"transitive_tag_keys"`
	Token          string            `json:"web_identity_token"`
	TokenFile      string            `json:"web_identity_token_file"`

	duration time.Duration
}

// read reads what the s3 backend knows, and returns the endpoint of S3. What it leaves out, the AWS SDK
// reads in the environment and in the shared files.
func (a *awsSettings) read(s *settings.Settings) (endpoint string, _ error) {
	if region := s.Text("region"); region != "" {
		a.load = append(a.load, config.WithRegion(region))
	}
	if profile := s.Text("profile"); profile != "" {
		a.load = append(a.load, config.WithSharedConfigProfile(profile))
	}
	var files, credentialFiles []string
	_, err := s.Decode("shared_config_files", &files)
	if file := os.Getenv("AWS_SHARED_CONFIG_FILE"); files == nil && file != "" { // which only the backend knows
		files = []string{file}
	}
	if files != nil {
		a.load = append(a.load, config.WithSharedConfigFiles(expand(files...)))
	}
	_, credentialsErr := s.Decode("shared_credentials_files", &credentialFiles)
	if file := s.Text("shared_credentials_file"); file != "" { // the older setting
		credentialFiles = []string{file}
	}
	if credentialFiles != nil {
		a.load = append(a.load, config.WithSharedCredentialsFiles(expand(credentialFiles...)))
	}
	if key := s.Text("access_key"); key != "" {
		a.load = append(a.load, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(key, s.Text("secret_key"), s.Text("token"))))
	}
	if s.Is("use_fips_endpoint", false) {
		a.load = append(a.load, config.WithUseFIPSEndpoint(aws.FIPSEndpointStateEnabled))
	}
	if s.Is("use_dualstack_endpoint", false) {
		a.load = append(a.load, config.WithUseDualStackEndpoint(aws.DualStackEndpointStateEnabled))
	}
	if s.Is("skip_metadata_api_check", false) {
		a.load = append(a.load, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	a.caBundle = s.Text("custom_ca_bundle")
	var endpoints struct{ S3, STS, IAM, DynamoDB string } // of the last two, nothing is asked
	_, endpointsErr := s.Decode("endpoints", &endpoints)
	a.stsEndpoint = withScheme(cmp.Or(endpoints.STS, s.Text("sts_endpoint", "AWS_ENDPOINT_URL_STS", "AWS_STS_ENDPOINT")))
	a.stsRegion = s.Text("sts_region")
	s.Ignore("secret_key", "token", "iam_endpoint", "max_retries", "retry_mode", "skip_credentials_validation", "skip_region_validation",
		"skip_requesting_account_id")
	endpoint = withScheme(cmp.Or(endpoints.S3, s.Text("endpoint", "AWS_ENDPOINT_URL_S3", "AWS_S3_ENDPOINT")))
	return endpoint, errors.Join(err, credentialsErr, endpointsErr, a.readRoles(s), settings.CheckEndpoint(a.stsEndpoint),
		s.Refuse("AWS_WEB_IDENTITY_TOKEN", "AWS_METADATA_URL"))
}

// readRoles reads the present and the older settings of roles.
func (a *awsSettings) readRoles(s *settings.Settings) error {
	hasRole, err := s.Decode("assume_role", &a.role)
	_, webErr := s.Decode("assume_role_with_web_identity", &a.webIdentity)
	if !hasRole {
		a.role.ARN, a.role.SessionName = s.Text("role_arn"), s.Text("session_name")
		if id := s.Text("external_id"); id != "" {
			a.role.ExternalID = &id
		}
	}
	for name, role := range map[string]*assumedRole{"assume_role": &a.role, "assume_role_with_web_identity": &a.webIdentity} {
		var durationErr error
		if role.duration, durationErr = time.ParseDuration(cmp.Or(role.Duration, "0s")); durationErr != nil {
			return settings.Unsupported(name)
		}
	}
	if web := &a.webIdentity; web.Token != "" || web.TokenFile != "" || web.ARN != "" {
		web.ARN = cmp.Or(web.ARN, os.Getenv("AWS_ROLE_ARN"))
		web.TokenFile = cmp.Or(web.TokenFile, os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"))
		web.SessionName = cmp.Or(web.SessionName, os.Getenv("AWS_ROLE_SESSION_NAME"))
	}
	return errors.Join(err, webErr)
}

// config finds region and credentials.
func (a *awsSettings) config(ctx context.Context, network http.RoundTripper) (aws.Config, error) {
	load := append(slices.Clip(a.load), config.WithLogger(logging.Nop{})) // the SDK's own writes to stderr
	if network != nil {
		load = append(load, config.WithHTTPClient(&http.Client{Transport: network, Timeout: bucket.RequestTimeout}))
	} else {
		load = append(load, config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(bucket.RequestTimeout)))
	}
	if a.caBundle != "" {
		bundle, err := os.Open(expand(a.caBundle)[0])
		if err != nil {
			return aws.Config{}, err
		}
		defer func() { _ = bundle.Close() }()
		load = append(load, config.WithCustomCABundle(bundle))
	}
	found, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return aws.Config{}, err
	}
	client := sts.NewFromConfig(found, func(o *sts.Options) {
		o.Region = cmp.Or(a.stsRegion, o.Region)
		if a.stsEndpoint != "" {
			o.BaseEndpoint = &a.stsEndpoint
		}
	})
	if a.webIdentity.ARN != "" {
		found.Credentials = aws.NewCredentialsCache(
			stscreds.NewWebIdentityRoleProvider(client, a.webIdentity.ARN, a.webIdentity, a.webIdentity.webOptions))
		client = sts.New(client.Options(), func(o *sts.Options) { o.Credentials = found.Credentials })
	}
	if a.role.ARN != "" {
		found.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(client, a.role.ARN, a.role.options))
	}
	return found, settings.CheckEndpoint(aws.ToString(client.Options().BaseEndpoint)) // tokens go there; a profile may have one
}

// expand does with paths what the backend does.
func expand(files ...string) (expanded []string) {
	for _, file := range files {
		expanded = append(expanded, settings.ExpandHome(os.ExpandEnv(file)))
	}
	return expanded
}

// GetIdentityToken returns the token to assume the role with.
func (r assumedRole) GetIdentityToken() ([]byte, error) {
	if r.Token != "" {
		return []byte(r.Token), nil
	}
	return stscreds.IdentityTokenFile(expand(r.TokenFile)[0]).GetIdentityToken()
}

func (r assumedRole) policies() (all []ststypes.PolicyDescriptorType) {
	for _, arn := range r.PolicyARNs {
		all = append(all, ststypes.PolicyDescriptorType{Arn: &arn})
	}
	return all
}

func (r assumedRole) webOptions(o *stscreds.WebIdentityRoleOptions) {
	o.Duration, o.Policy, o.PolicyARNs, o.RoleSessionName = r.duration, r.Policy, r.policies(), r.SessionName
}

func (r assumedRole) options(o *stscreds.AssumeRoleOptions) {
	o.Duration, o.ExternalID, o.Policy, o.PolicyARNs = r.duration, r.ExternalID, r.Policy, r.policies()
	o.SourceIdentity, o.TransitiveTagKeys = r.SourceIdentity, r.TransitiveTags
	if r.SessionName != "" {
		o.RoleSessionName = r.SessionName
	}
	for key, value := range r.Tags {
		o.Tags = append(o.Tags, ststypes.Tag{Key: &key, Value: &value})
	}
}

// withScheme makes a host a URL, as the backend does.
func withScheme(endpoint string) string {
	if endpoint == "" || strings.Contains(endpoint, "://") {
		return endpoint
	}
	return "https://" + endpoint
}
