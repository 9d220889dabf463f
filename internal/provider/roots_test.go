// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"crypto/x509"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

func TestAuthoritiesAreTrustedBesidesTheSystems(t *testing.T) {
	authority := faultserver.New(t, nil, faultserver.Options{TLS: true}).Authority
	want, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	want.AppendCertsFromPEM([]byte(authority))
	configured := providerModel{CACertificatesPEM: types.StringValue(authority)}
	if !configured.roots(new(diag.Diagnostics)).Equal(want) {
		t.Error("other authorities are trusted than the system's and the one that was given")
	}
}
