// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// No certificate is left out in silence, and the system's are trusted, too.
func TestParseCertificates(t *testing.T) {
	server := httptest.NewTLSServer(nil) // for its certificate
	server.Close()
	one := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	want, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	want.AddCert(server.Certificate())
	configured := providerModel{CACertificatesPEM: types.StringValue(one)}
	if !configured.roots(new(diag.Diagnostics)).Equal(want) {
		t.Error("other authorities are trusted than the system's and the one that was given")
	}
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
