// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/source"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// roles is followed by the name of a role.
const roles = "arn:aws:iam::123456789012:role/"

// bucket is one for state and journal, with the two roles of the guide.
type bucket struct {
	*testing.T

	name, folder string // a state and a journal of their own
	server       aws.Config
}

// role is what AWS gives to who assumes one.
type role struct{ AccessKeyId, SecretAccessKey, SessionToken string }

func (c role) env() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + c.AccessKeyId, "AWS_SECRET_ACCESS_KEY=" + c.SecretAccessKey, "AWS_SESSION_TOKEN=" + c.SessionToken}
}

// useBucket moves state and journal to a bucket, by the configuration of the guide. Without a server it skips the test.
func (r *runner) useBucket() {
	r.Helper()
	at, err := url.Parse(os.Getenv("AGENT_TEST_S3"))
	if err != nil || at.Host == "" {
		r.Skip("AGENT_TEST_S3 is not set: make test-stores sets it")
	}
	stub, _ := source.Terraform().Path() // it panics with a remote backend
	clis := append([]tfcli.CLI{cli}, tfcli.All(r.Context(), io.Discard)...)
	i := slices.IndexFunc(clis, func(c tfcli.CLI) bool { return c.Path != stub })
	if i < 0 {
		r.Skip("needs a CLI with remote backends, which the Terraform that make clis builds lacks: TF_CLI chooses another")
	}
	r.use(clis[i])
	b := &bucket{T: r.T, name: at.Host, folder: strings.ToLower(rand.Text())}
	if b.server, err = config.LoadDefaultConfig(r.Context(), config.WithRegion(at.Query().Get("region"))); err != nil {
		r.Fatal(err)
	}
	endpoint := at.Query().Get("endpoint")
	b.server.BaseEndpoint = &endpoint
	tokens := httptest.NewServer(b)
	r.Cleanup(tokens.Close)
	r.bucket, r.values["vars.AWS_ROLE_ARN"] = b, roles
	r.files["agent/main.tf"] = strings.ReplaceAll(b.replace(read(r.T, pipelines+"agent.tf")), "https://api.mintlify.com", r.values["vars.AGENT_BASE_URL"])
	r.env = []string{
		"AWS_REGION=us-east-1", "AWS_ENDPOINT_URL_S3=" + endpoint, "AWS_ENDPOINT_URL_STS=" + tokens.URL,
		"TF_CLI_ARGS_init=-backend-config=use_path_style=true", // AWS has a name for each bucket
	}
}

// replace puts the test's bucket, and its part there, into a file of the guide.
func (b *bucket) replace(text string) string {
	return strings.NewReplacer("ci-state", b.name, "agent/", b.folder+"/", "eu-central-1", b.server.Region).Replace(text)
}

// assume assumes a role, which has the policy of the guide.
func (b *bucket) assume(name string) role {
	b.Helper()
	policy := b.replace(read(b.T, pipelines+"bucket/"+strings.TrimPrefix(name, "agent-")+".json"))
	arn, session := roles+name, "test"
	assumed, err := sts.NewFromConfig(b.server).AssumeRole(b.Context(), &sts.AssumeRoleInput{RoleArn: &arn, RoleSessionName: &session, Policy: &policy})
	if err != nil {
		b.Fatal(err)
	}
	c := assumed.Credentials
	return role{*c.AccessKeyId, *c.SecretAccessKey, *c.SessionToken}
}

// ServeHTTP stands in for AWS STS, as MinIO's knows neither GitLab's tokens nor who asks.
func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch action := r.FormValue("Action"); {
	case action == "GetCallerIdentity":
		_, _ = fmt.Fprintf(w, "<%[1]sResponse><%[1]sResult><Arn>%[2]sx</Arn><UserId>x</UserId><Account>123456789012</Account></%[1]sResult></%[1]sResponse>", action, roles)
	case action == "AssumeRoleWithWebIdentity" && r.FormValue("WebIdentityToken") == "token":
		c := b.assume(strings.TrimPrefix(r.FormValue("RoleArn"), roles))
		_, _ = fmt.Fprintf(w, "<%[1]sResponse><%[1]sResult><Credentials><AccessKeyId>%[2]s</AccessKeyId><SecretAccessKey>%[3]s</SecretAccessKey>"+
			"<SessionToken>%[4]s</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></%[1]sResult></%[1]sResponse>",
			action, c.AccessKeyId, c.SecretAccessKey, c.SessionToken)
	default:
		http.Error(w, action, http.StatusForbidden)
	}
}

// objects returns state, lock and records.
func (b *bucket) objects() map[string]string {
	b.Helper()
	ctx, client, all := b.Context(), s3.NewFromConfig(b.server, func(o *s3.Options) { o.UsePathStyle = true }), map[string]string{}
	listed, err := client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &b.folder})
	if err != nil {
		b.Fatal(err)
	}
	for _, listed := range listed.Contents {
		object, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: listed.Key})
		if err != nil {
			b.Fatal(err)
		}
		text, err := io.ReadAll(object.Body)
		if _ = object.Body.Close(); err != nil || bytes.Contains(text, []byte(canary)) {
			b.Errorf("%s: %v, or the key is in it", *listed.Key, err)
		}
		all[*listed.Key] = string(text)
	}
	return all
}
