// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"crypto/x509"
	"strings"
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
	diags := new(diag.Diagnostics)
	if !configured.roots(diags).Equal(want) || diags.HasError() {
		t.Error("other authorities are trusted than the system's and the one that was given")
	}
}

// No certificate is left out in silence.
func TestParseCertificates(t *testing.T) {
	one := faultserver.New(t, nil, faultserver.Options{TLS: true}).Authority
	const bom = "\ufeff"
	damaged := strings.Replace(one, "\nMII", "\nM-I", 1)
	changed := strings.Replace(one, "\nMII", "\nMIA", 1)
	cut, _, _ := strings.Cut(one, "\n-----END")
	crlf := strings.ReplaceAll(one, "\n", "\r\n")
	key := strings.NewReplacer(" CERTIFICATE", " RSA PRIVATE KEY", "\nMII", "\ncanaryA").Replace(one)
	for name, test := range map[string]struct {
		text string
		want int    // certificates
		err  string // what it says
	}{
		"joined files with BOM": {bom + one + bom + one + "\r\n" + bom + crlf, 3, ""},
		"comments":              {"# Root\n" + one + "Subject: CN = -----BEGIN\n# -----END CERTIFICATE-----\n\n" + one + "# the end", 2, ""},
		"no final newline":      {strings.TrimSpace(one), 1, ""},
		"a file's name":         {"ca.pem", 0, `not its name: file("ca.pem")`},
		"damaged base64":        {one + damaged + one, 0, "3 lines -----BEGIN, 3 lines -----END, and whole certificates: 2"},
		"damaged DER":           {one + one + changed, 0, `block 3, "CERTIFICATE", is no certificate`},
		"cut off":               {one + cut, 0, "damaged or cut off"},
		"no line end between":   {strings.TrimSpace(one) + one, 0, "damaged or cut off"},
		"no BEGIN later":        {one + "----" + one[5:], 0, "damaged or cut off"},
		"a key":                 {one + key, 0, `block 2, "RSA PRIVATE KEY", is no certificate`},
		"a key that is cut off": {one + key[:40], 0, "damaged or cut off"},
		"a request":             {strings.ReplaceAll(one, "CERTIFICATE", "CERTIFICATE REQUEST"), 0, `block 1, "CERTIFICATE REQUEST"`},
	} {
		got, err := parseCertificates(test.text)
		if len(got) != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %d certificates, %v", name, len(got), err)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the key is shown: %v", name, err)
		}
	}
}
