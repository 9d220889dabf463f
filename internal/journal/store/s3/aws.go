// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package s3

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sso"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/net/http/httpproxy"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

// awsSettings say how to reach AWS, and as whom. What they leave out, the AWS SDK reads in the environment and in the shared files.
type awsSettings struct {
	region    string // if it is a setting
	load      []func(*config.LoadOptions) error
	transport func(*http.Transport)
	caBundle  string

	stsEndpoint, stsRegion, ssoEndpoint string

	hasKeys            bool
	role               assumedRole // assumed with the credentials found so far
	webIdentity        assumedRole // assumed with a token, unless there are keys
	allowed, forbidden []string    // accounts
}

// read reads what a URL may have, too.
func (a *awsSettings) read(s *settings.Settings) {
	if a.region = s.Text("region"); a.region != "" {
		a.load = append(a.load, config.WithRegion(a.region))
	}
	if profile := s.Text("profile"); profile != "" {
		a.load = append(a.load, config.WithSharedConfigProfile(profile))
	}
}

// readBackend reads what only the s3 backend knows: settings, and variables that are not the AWS SDK's. It returns the endpoint of S3.
func (a *awsSettings) readBackend(s *settings.Settings) (endpoint string, _ error) {
	var configFiles, credentialFiles []string
	_, configErr := s.Decode("shared_config_files", &configFiles)
	_, credentialsErr := s.Decode("shared_credentials_files", &credentialFiles)
	older := s.Text("shared_credentials_file")
	if file := cmp.Or(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), older); credentialFiles == nil && file != "" {
		credentialFiles = []string{file}
	}
	if file := os.Getenv("AWS_SHARED_CONFIG_FILE"); configFiles == nil && file != "" {
		configFiles = []string{file}
	}
	if credentialFiles != nil {
		a.load = append(a.load, config.WithSharedCredentialsFiles(expand(credentialFiles...)))
	}
	if configFiles != nil {
		a.load = append(a.load, config.WithSharedConfigFiles(expand(configFiles...)))
	}
	key, secret, token := s.Text("access_key"), s.Text("secret_key"), s.Text("token")
	if a.hasKeys = key+secret+token != ""; a.hasKeys {
		a.load = append(a.load, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(key, secret, token)))
	}
	if s.Is("use_fips_endpoint", false) {
		a.load = append(a.load, config.WithUseFIPSEndpoint(aws.FIPSEndpointStateEnabled))
	}
	if s.Is("use_dualstack_endpoint", false) {
		a.load = append(a.load, config.WithUseDualStackEndpoint(aws.DualStackEndpointStateEnabled))
	}
	var endpoints struct{ S3, STS, SSO, IAM, DynamoDB string } // of the last two, nothing is asked
	_, endpointsErr := s.Decode("endpoints", &endpoints)
	a.stsEndpoint = withScheme(cmp.Or(endpoints.STS, s.Text("sts_endpoint", "AWS_ENDPOINT_URL_STS", "AWS_STS_ENDPOINT")))
	a.ssoEndpoint = withScheme(endpoints.SSO)
	a.stsRegion = s.Text("sts_region")
	_, allowedErr := s.Decode("allowed_account_ids", &a.allowed)
	_, forbiddenErr := s.Decode("forbidden_account_ids", &a.forbidden)
	s.Ignore("iam_endpoint", "max_retries", "retry_mode", "skip_credentials_validation", "skip_region_validation",
		"skip_requesting_account_id")
	a.readTransport(s)
	endpoint = withScheme(cmp.Or(endpoints.S3, s.Text("endpoint", "AWS_ENDPOINT_URL_S3", "AWS_S3_ENDPOINT")))
	err := errors.Join(configErr, credentialsErr, endpointsErr, allowedErr, forbiddenErr, a.readMetadata(s), a.readRoles(s))
	if asksSTS := a.role.ARN+a.webIdentity.ARN != "" || len(a.allowed)+len(a.forbidden) > 0; asksSTS {
		err = errors.Join(err, settings.CheckEndpoint(a.stsEndpoint)) // else it is no concern, or encrypted finds out
	}
	return endpoint, err
}

// readMetadata reads how to reach the service that lends a machine its role.
func (a *awsSettings) readMetadata(s *settings.Settings) error {
	switch {
	case s.Is("skip_metadata_api_check", false):
		a.load = append(a.load, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	case !s.Is("skip_metadata_api_check", true): // it is set
		a.load = append(a.load, config.WithEC2IMDSClientEnableState(imds.ClientEnabled))
	}
	at := s.Text("ec2_metadata_service_endpoint", "AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_METADATA_URL")
	if at != "" {
		a.load = append(a.load, config.WithEC2IMDSEndpoint(at))
	}
	var mode imds.EndpointModeState
	if mode.SetFromString(s.Text("ec2_metadata_service_endpoint_mode")) != nil {
		return settings.Unsupported("ec2_metadata_service_endpoint_mode")
	}
	if mode != imds.EndpointModeStateUnset {
		a.load = append(a.load, config.WithEC2IMDSEndpointMode(mode))
	}
	return nil
}

// readTransport reads settings of proxies, beside their variables, and of certificates. It leaves insecure unread, which refuses it:
// whoever is in between could make a run send again.
func (a *awsSettings) readTransport(s *settings.Settings) {
	proxies := httpproxy.FromEnvironment()
	if proxy := s.Text("http_proxy"); proxy != "" {
		proxies.HTTPProxy = proxy
		proxies.HTTPSProxy = cmp.Or(proxies.HTTPSProxy, proxy) // as Terraform does; OpenTofu would use none
	}
	proxies.HTTPSProxy = cmp.Or(s.Text("https_proxy"), proxies.HTTPSProxy)
	proxies.NoProxy = cmp.Or(s.Text("no_proxy"), proxies.NoProxy)
	choose := proxies.ProxyFunc()
	a.caBundle = s.Text("custom_ca_bundle", "AWS_CA_BUNDLE")
	a.transport = func(t *http.Transport) {
		t.Proxy = func(r *http.Request) (*url.URL, error) { return choose(r.URL) }
	}
}

// config finds region and credentials. It requests nothing yet.
func (a *awsSettings) config(ctx context.Context, network http.RoundTripper) (aws.Config, error) {
	load := append(slices.Clip(a.load), config.WithAPIOptions([]func(*middleware.Stack) error{encrypted}),
		config.WithAssumeRoleCredentialOptions(func(o *stscreds.AssumeRoleOptions) { // of a profile, as the next two
			if client, ok := o.Client.(*sts.Client); ok {
				o.Client = sts.New(client.Options(), a.reachSTS)
			}
		}),
		config.WithWebIdentityRoleCredentialOptions(func(o *stscreds.WebIdentityRoleOptions) {
			if client, ok := o.Client.(*sts.Client); ok {
				o.Client = sts.New(client.Options(), a.reachSTS)
			}
		}),
		config.WithSSOProviderOptions(func(o *ssocreds.Options) {
			if client, ok := o.Client.(*sso.Client); ok {
				o.Client = sso.New(client.Options(), func(o *sso.Options) {
					o.HTTPClient = direct(o.HTTPClient)
					if a.ssoEndpoint != "" {
						o.BaseEndpoint, o.EndpointOptions = &a.ssoEndpoint, sso.EndpointResolverOptions{}
					}
				})
			}
		}),
		config.WithLogger(logging.Nop{})) // not the SDK's own, which writes to stderr
	client := awshttp.NewBuildableClient().WithTimeout(bucket.RequestTimeout)
	switch {
	case network != nil:
		load = append(load, config.WithHTTPClient(&http.Client{Transport: network, Timeout: bucket.RequestTimeout}))
	case a.transport != nil:
		load = append(load, config.WithHTTPClient(client.WithTransportOptions(a.transport)))
	default:
		load = append(load, config.WithHTTPClient(client))
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
	if a.webIdentity.ARN != "" && !a.hasKeys {
		found.Credentials = aws.NewCredentialsCache(
			stscreds.NewWebIdentityRoleProvider(a.sts(found), a.webIdentity.ARN, a.webIdentity, a.webIdentity.webOptions))
	}
	if a.role.ARN != "" {
		found.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(a.sts(found), a.role.ARN, a.role.options))
	}
	return found, nil
}

// direct follows no redirect. The SDK's client follows those of a GET, with each header: the key of a customer, the token of SSO. It does
// not send a body again, which those for STS and other tokens have.
func direct(client aws.HTTPClient) aws.HTTPClient {
	switch client := client.(type) {
	case *awshttp.BuildableClient:
		return &http.Client{Transport: client.GetTransport(), Timeout: client.GetTimeout(), CheckRedirect: bucket.NoRedirect}
	case *http.Client:
		return &http.Client{Transport: client.Transport, Timeout: client.Timeout, CheckRedirect: bucket.NoRedirect}
	}
	return client
}

func (a *awsSettings) sts(found aws.Config) *sts.Client {
	return sts.NewFromConfig(found, func(o *sts.Options) { o.Region = cmp.Or(a.stsRegion, o.Region) }, a.reachSTS)
}

func (a *awsSettings) reachSTS(o *sts.Options) {
	if a.stsEndpoint != "" {
		o.BaseEndpoint, o.Region = &a.stsEndpoint, cmp.Or(a.stsRegion, o.Region)
		o.EndpointOptions = sts.EndpointResolverOptions{} // the SDK refuses FIPS and dual stack at an endpoint
	}
}

// partition is what ARNs start with.
func (a *awsSettings) partition() string {
	region := cmp.Or(a.region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// checkAccount asks AWS whose credentials these are, if the backend would compare that.
func (a *awsSettings) checkAccount(ctx context.Context, found aws.Config) error {
	if len(a.allowed)+len(a.forbidden) == 0 {
		return nil
	}
	identity, err := a.sts(found).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return err
	}
	account := aws.ToString(identity.Account)
	if slices.Contains(a.forbidden, account) || a.allowed != nil && !slices.Contains(a.allowed, account) {
		return errors.New("the credentials are for an account that allowed_account_ids or forbidden_account_ids excludes")
	}
	return nil
}

// encrypted keeps credentials, and tokens for them, from going unencrypted to where a setting, a variable or a profile leads.
func encrypted(stack *middleware.Stack) error {
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("Encrypted", func(
		ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
	) (out middleware.DeserializeOutput, metadata middleware.Metadata, _ error) {
		request, isHTTP := in.Request.(*smithyhttp.Request)
		if lends := slices.Contains([]string{"STS", "SSO", "SSO OIDC", "Signin"}, awsmiddleware.GetServiceID(ctx)); lends && isHTTP &&
			request.URL.Scheme != "https" && !settings.IsLoopback(request.URL.Hostname()) {
			return out, metadata, errors.New("the endpoint of STS or SSO must be https, or http for a loopback address")
		}
		return next.HandleDeserialize(ctx, in)
	}), middleware.After)
}

// expand does with paths what the backend does.
func expand(files ...string) (expanded []string) {
	for _, file := range files {
		expanded = append(expanded, settings.ExpandHome(os.ExpandEnv(file)))
	}
	return expanded
}

// withScheme makes a host a URL, as the backend does.
func withScheme(endpoint string) string {
	if endpoint == "" || strings.Contains(endpoint, "://") {
		return endpoint
	}
	return "https://" + endpoint
}
