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

// assumedRole is a role as the backend's settings describe one.
type assumedRole struct {
	ARN            string            `json:"role_arn"`
	Duration       string            `json:"duration"`
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

// readRoles reads the present and the older settings of roles.
func (a *awsSettings) readRoles(s *settings.Settings) error {
	var role, web, older assumedRole
	var seconds int
	isSet, err := s.Decode("assume_role", &role)
	isWeb, webErr := s.Decode("assume_role_with_web_identity", &web)
	errs := []error{err, webErr}
	for name, into := range map[string]any{
		"role_arn": &older.ARN, "session_name": &older.SessionName, "external_id": &older.ExternalID,
		"assume_role_duration_seconds": &seconds, "assume_role_policy": &older.Policy, "assume_role_policy_arns": &older.PolicyARNs,
		"assume_role_tags": &older.Tags, "assume_role_transitive_tag_keys": &older.TransitiveTags,
	} {
		_, err := s.Decode(name, into)
		errs = append(errs, err)
	}
	if !isSet {
		role, role.Duration = older, (time.Duration(seconds) * time.Second).String()
	}
	duration, err := time.ParseDuration(cmp.Or(role.Duration, "0s"))
	if err != nil || isSet && role.ARN == "" {
		errs = append(errs, settings.Unsupported("assume_role"))
	}
	if role.ARN != "" {
		a.AssumeRole = []awsbase.AssumeRole{{
			RoleARN: role.ARN, Duration: duration, ExternalID: role.ExternalID, Policy: role.Policy, PolicyARNs: role.PolicyARNs,
			SessionName: role.SessionName, SourceIdentity: role.SourceIdentity, Tags: role.Tags, TransitiveTagKeys: role.TransitiveTags,
		}}
	}
	if isWeb { // OpenTofu reads these variables, and Terraform demands the settings
		web.ARN = cmp.Or(web.ARN, os.Getenv("AWS_ROLE_ARN"))
		web.SessionName = cmp.Or(web.SessionName, os.Getenv("AWS_ROLE_SESSION_NAME"))
		if web.Token == "" && web.TokenFile == "" {
			web.Token, web.TokenFile = os.Getenv("AWS_WEB_IDENTITY_TOKEN"), os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE")
		}
		duration, err := time.ParseDuration(cmp.Or(web.Duration, "0s"))
		if err != nil || web.ARN == "" || web.Token == "" && web.TokenFile == "" {
			errs = append(errs, settings.Unsupported("assume_role_with_web_identity"))
		}
		a.AssumeRoleWithWebIdentity = &awsbase.AssumeRoleWithWebIdentity{
			RoleARN: web.ARN, Duration: duration, Policy: web.Policy, PolicyARNs: web.PolicyARNs, SessionName: web.SessionName,
			WebIdentityToken: web.Token, WebIdentityTokenFile: web.TokenFile,
		}
	}
	return errors.Join(errs...)
}
