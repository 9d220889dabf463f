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
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go/logging"
	awsbase "github.com/hashicorp/aws-sdk-go-base/v2"
	"github.com/hashicorp/aws-sdk-go-base/v2/diag"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

// awsSettings say how to reach AWS, and as whom. The library of the s3 backend does the rest.
type awsSettings struct{ awsbase.Config }

// read reads the settings that a URL may have, too.
func (a *awsSettings) read(s *settings.Settings) {
	a.Region, a.Profile = s.Text("region"), s.Text("profile")
	a.SkipCredsValidation = true // it would be a request for each process
	// The library would read these itself, but then also set the former variable to the latter.
	a.EC2MetadataServiceEndpoint = cmp.Or(os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), os.Getenv("AWS_METADATA_URL"))
}

// readBackend reads what only the s3 backend knows: settings, and variables that are not the AWS
// SDK's. It returns the endpoint of S3. It leaves the setting insecure unread, which is an error if
// it is set: whoever is in between could make a run send again.
func (a *awsSettings) readBackend(s *settings.Settings) (endpoint string, _ error) {
	var endpoints struct{ S3, STS, SSO, IAM, DynamoDB string } // the last two are never called
	errs := []error{a.readRoles(s)}
	for name, into := range map[string]any{
		"shared_config_files": &a.SharedConfigFiles, "shared_credentials_files": &a.SharedCredentialsFiles, "endpoints": &endpoints,
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
	a.AccessKey, a.SecretKey, a.Token = s.Text("access_key"), s.Text("secret_key"), s.Text("token")
	a.UseFIPSEndpoint, a.UseDualStackEndpoint = s.Is("use_fips_endpoint", false), s.Is("use_dualstack_endpoint", false)
	a.StsEndpoint = withScheme(cmp.Or(endpoints.STS, s.Text("sts_endpoint", "AWS_ENDPOINT_URL_STS", "AWS_STS_ENDPOINT")))
	a.StsRegion, a.SsoEndpoint = s.Text("sts_region"), withScheme(endpoints.SSO)
	a.readMetadata(s)
	a.HTTPProxy, a.HTTPSProxy = optional(s.Text("http_proxy")), optional(s.Text("https_proxy"))
	a.NoProxy, a.CustomCABundle = s.Text("no_proxy"), s.Text("custom_ca_bundle", "AWS_CA_BUNDLE")
	s.Ignore("allowed_account_ids", "forbidden_account_ids", // the backend has compared them: without that, the CLI sends nothing
		"iam_endpoint", "max_retries", "retry_mode", "skip_credentials_validation", "skip_region_validation", "skip_requesting_account_id")
	return withScheme(cmp.Or(endpoints.S3, s.Text("endpoint", "AWS_ENDPOINT_URL_S3", "AWS_S3_ENDPOINT"))), errors.Join(errs...)
}

// readMetadata reads how to reach the service that lends a machine its role. The library's
// constants for on and off would also set a variable of this process, so this uses other values.
func (a *awsSettings) readMetadata(s *settings.Settings) {
	a.EC2MetadataServiceEndpoint = cmp.Or(s.Text("ec2_metadata_service_endpoint"), a.EC2MetadataServiceEndpoint)
	switch {
	case s.Is("skip_metadata_api_check", false):
		a.EC2MetadataServiceEndpoint = ":skip_metadata_api_check" // no URL, so nothing is requested
	case !s.Is("skip_metadata_api_check", true): // it is set
		a.EC2MetadataServiceEnableState = imds.ClientEnabled + 1 // neither the default nor ClientDisabled
	}
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// config finds region and credentials, for which it may ask STS and others.
func (a *awsSettings) config(ctx context.Context, network http.RoundTripper) (aws.Config, error) {
	c := a.Config
	if network != nil {
		c.HTTPClient = &http.Client{Transport: network, Timeout: bucket.RequestTimeout}
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

// direct follows no redirect. The SDK's client follows those of a GET, with each header.
func direct(client aws.HTTPClient) aws.HTTPClient {
	found := &http.Client{Timeout: bucket.RequestTimeout, CheckRedirect: bucket.NoRedirect}
	switch client := client.(type) {
	case *awshttp.BuildableClient:
		found.Transport = client.GetTransport()
	case *http.Client: // of config
		found.Transport = client.Transport
	}
	return found
}

// partition is what ARNs start with.
func (a *awsSettings) partition() string {
	region := cmp.Or(a.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// withScheme makes a host a URL, as the backend does.
func withScheme(endpoint string) string {
	if endpoint == "" || strings.Contains(endpoint, "://") {
		return endpoint
	}
	return "https://" + endpoint
}
