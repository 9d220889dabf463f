// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package s3

import (
	"cmp"
	"errors"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

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

// readRoles reads the present and the older settings of roles.
func (a *awsSettings) readRoles(s *settings.Settings) error {
	isSet, err := s.Decode("assume_role", &a.role)
	isWeb, webErr := s.Decode("assume_role_with_web_identity", &a.webIdentity)
	errs := []error{err, webErr}
	var older assumedRole
	var seconds int
	for name, into := range map[string]any{
		"role_arn": &older.ARN, "session_name": &older.SessionName, "external_id": &older.ExternalID,
		"assume_role_duration_seconds": &seconds, "assume_role_policy": &older.Policy, "assume_role_policy_arns": &older.PolicyARNs,
		"assume_role_tags": &older.Tags, "assume_role_transitive_tag_keys": &older.TransitiveTags,
	} {
		_, err := s.Decode(name, into)
		errs = append(errs, err)
	}
	if !isSet {
		a.role = older
	}
	web := &a.webIdentity
	if isWeb { // OpenTofu reads these variables, and Terraform demands the settings
		web.ARN = cmp.Or(web.ARN, os.Getenv("AWS_ROLE_ARN"))
		web.SessionName = cmp.Or(web.SessionName, os.Getenv("AWS_ROLE_SESSION_NAME"))
		if web.Token == "" && web.TokenFile == "" {
			web.Token, web.TokenFile = os.Getenv("AWS_WEB_IDENTITY_TOKEN"), os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE")
		}
	}
	for name, role := range map[string]*assumedRole{"assume_role": &a.role, "assume_role_with_web_identity": web} {
		role.duration, err = time.ParseDuration(cmp.Or(role.Duration, "0s"))
		if err != nil || name == "assume_role" && isSet && role.ARN == "" ||
			role == web && isWeb && (web.ARN == "" || web.Token == "" && web.TokenFile == "") {
			errs = append(errs, settings.Unsupported(name))
		}
	}
	a.role.duration += time.Duration(seconds) * time.Second
	return errors.Join(errs...)
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
