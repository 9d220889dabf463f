// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package s3

import (
	"cmp"
	"errors"
	"os"
	"time"

	awsbase "github.com/hashicorp/aws-sdk-go-base/v2"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

// assumedRole is a role as the blocks of the backend describe one.
type assumedRole struct {
	ARN            string            `json:"role_arn"`
	Duration       duration          `json:"duration"`
	ExternalID     string            `json:"external_id"`
	Policy         string            `json:"policy"`
	PolicyARNs     []string          `json:"policy_arns"`
	SessionName    string            `json:"session_name"`
	SourceIdentity string            `json:"source_identity"`
	Tags           map[string]string `json:"tags"`
	TransitiveTags []string          `json:"transitive_tag_keys"`
	Token          string            `json:"web_identity_token"`
	TokenFile      string            `json:"web_identity_token_file"`
}

// duration is written as 1h30m.
type duration time.Duration

// UnmarshalText reads one.
func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = duration(parsed)
	return err
}

// readRoles reads which roles to assume. The library refuses one without a name or a token.
func (a *awsSettings) readRoles(s *settings.Settings) error {
	var role, web assumedRole
	var seconds int
	var errs []error
	for name, into := range map[string]any{ // the older settings, in place of the block
		"role_arn": &role.ARN, "session_name": &role.SessionName, "external_id": &role.ExternalID,
		"assume_role_duration_seconds": &seconds, "assume_role_policy": &role.Policy, "assume_role_policy_arns": &role.PolicyARNs,
		"assume_role_tags": &role.Tags, "assume_role_transitive_tag_keys": &role.TransitiveTags,
	} {
		_, err := s.Decode(name, into)
		errs = append(errs, err)
	}
	role.Duration = duration(time.Duration(seconds) * time.Second)
	isSet, err := s.Decode("assume_role", &role)
	if isSet || role.ARN != "" {
		a.AssumeRole = []awsbase.AssumeRole{{
			RoleARN: role.ARN, Duration: time.Duration(role.Duration), ExternalID: role.ExternalID, Policy: role.Policy,
			PolicyARNs: role.PolicyARNs, SessionName: role.SessionName, SourceIdentity: role.SourceIdentity, Tags: role.Tags,
			TransitiveTagKeys: role.TransitiveTags,
		}}
	}
	isWeb, webErr := s.Decode("assume_role_with_web_identity", &web)
	err = errors.Join(append(errs, err, webErr)...)
	if !isWeb {
		return err
	}
	if web.Token == "" && web.TokenFile == "" { // OpenTofu reads these variables, and Terraform demands the settings
		web.Token, web.TokenFile = os.Getenv("AWS_WEB_IDENTITY_TOKEN"), os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE")
	}
	a.AssumeRoleWithWebIdentity = &awsbase.AssumeRoleWithWebIdentity{
		RoleARN: cmp.Or(web.ARN, os.Getenv("AWS_ROLE_ARN")), SessionName: cmp.Or(web.SessionName, os.Getenv("AWS_ROLE_SESSION_NAME")),
		Duration: time.Duration(web.Duration), Policy: web.Policy, PolicyARNs: web.PolicyARNs,
		WebIdentityToken: web.Token, WebIdentityTokenFile: web.TokenFile,
	}
	return err
}
