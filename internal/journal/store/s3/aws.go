// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/logging"
	awsbase "github.com/hashicorp/aws-sdk-go-base/v2"
	"github.com/hashicorp/aws-sdk-go-base/v2/diag"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

// awsSettings say how to reach AWS, and as whom. The library of the s3 backend does the rest: it
// takes the first of these credentials that is there:
//
//  1. access_key and secret_key of the backend's settings
//  2. the profile of the setting, in the shared files
//  3. AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
//  4. AWS_WEB_IDENTITY_TOKEN_FILE with AWS_ROLE_ARN
//  5. AWS_PROFILE, or the profile "default": keys, a role, SSO, or a process
//  6. the role of the container, or else of the machine
//
// The block assume_role_with_web_identity takes the place of 2 to 6. The role of the block
// assume_role is assumed with what was found so.
type awsSettings struct{ awsbase.Config }

// read reads the settings that a URL may have, too.
func (a *awsSettings) read(s *settings.Settings) {
	a.Region, a.Profile = s.Text("region"), s.Text("profile")
	a.SkipCredsValidation = true // it would be a request for each process
	// The library would read the last variable itself, but then also set the one before it.
	a.EC2MetadataServiceEndpoint = s.Text("ec2_metadata_service_endpoint", "AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_METADATA_URL")
}

// readBackend reads what only the s3 backend knows: settings, and variables that are not the AWS
// SDK's. It returns the endpoint of S3. It leaves the setting insecure unread, which is an error if
// it is set: whoever is in between could make a run send again.
func (a *awsSettings) readBackend(s *settings.Settings) (endpoint string, _ error) {
	var endpoints struct{ S3, STS, SSO, IAM, DynamoDB string } // the last two are never called
	errs := []error{a.readRoles(s)}
	for name, into := range map[string]any{
		"access_key": &a.AccessKey, "secret_key": &a.SecretKey, "token": &a.Token,
		"shared_config_files": &a.SharedConfigFiles, "shared_credentials_files": &a.SharedCredentialsFiles,
		"endpoints": &endpoints, "sts_region": &a.StsRegion,
		"use_fips_endpoint": &a.UseFIPSEndpoint, "use_dualstack_endpoint": &a.UseDualStackEndpoint,
		"http_proxy": &a.HTTPProxy, "https_proxy": &a.HTTPSProxy, "no_proxy": &a.NoProxy,
	} {
		_, err := s.Decode(name, into)
		errs = append(errs, err)
	}
	older := s.Text("shared_credentials_file")
	if file := cmp.Or(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), older); a.SharedCredentialsFiles == nil && file != "" {
		a.SharedCredentialsFiles = []string{file}
	}
	if file := os.Getenv("AWS_SHARED_CONFIG_FILE"); a.SharedConfigFiles == nil && file != "" {
		a.SharedConfigFiles = []string{file}
	}
	a.CustomCABundle = s.Text("custom_ca_bundle", "AWS_CA_BUNDLE")
	a.SsoEndpoint = withScheme(endpoints.SSO)
	a.StsEndpoint = withScheme(cmp.Or(endpoints.STS, s.Text("sts_endpoint", "AWS_ENDPOINT_URL_STS", "AWS_STS_ENDPOINT")))
	s.Ignore("allowed_account_ids", "forbidden_account_ids", // the backend has compared them: without that, the CLI sends nothing
		"skip_metadata_api_check", // the machine's role is the last that is tried, and the backend found credentials without it
		"iam_endpoint", "max_retries", "retry_mode", "skip_credentials_validation", "skip_region_validation", "skip_requesting_account_id")
	return withScheme(cmp.Or(endpoints.S3, s.Text("endpoint", "AWS_ENDPOINT_URL_S3", "AWS_S3_ENDPOINT"))), errors.Join(errs...)
}

// config finds region and credentials, for which it may ask STS and others.
func (a *awsSettings) config(ctx context.Context, network http.RoundTripper) (aws.Config, error) {
	c := a.Config
	if network != nil {
		c.HTTPClient = bucket.Client(network)
	}
	_, found, diags := awsbase.GetAwsConfig(ctx, &c)
	found.Logger, found.ClientLogMode, found.Retryer = logging.Nop{}, 0, nil // the library's write to the log of the process
	return found, firstError(diags)
}

// firstError leaves out the advice of the library, which repeats the settings.
func firstError(diags diag.Diagnostics) error {
	errs := diags.Errors()
	if len(errs) == 0 {
		return nil
	}
	failed, ok := errs[0].(diag.DiagnosticWithErr)
	switch {
	case !ok:
		return errors.New(errs[0].Summary())
	case failed.Detail() == "": // then the summary is the error
		return failed.Err()
	}
	return fmt.Errorf("%s: %w", failed.Summary(), failed.Err())
}

// withScheme makes a host a URL, as the backend does.
func withScheme(endpoint string) string {
	if endpoint == "" || strings.Contains(endpoint, "://") {
		return endpoint
	}
	return "https://" + endpoint
}
