// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

func validCertificates() validator.String {
	return validate.Rule{Summary: wording.InvalidCertificates, Accepts: "certificates in PEM format", Check: func(text string) error {
		_, err := parseCertificates(text)
		return err
	}}
}

// roots are the system's certificates and the given ones; nil are the system's alone.
func (m providerModel) roots(diags *diag.Diagnostics) *x509.CertPool {
	if m.CACertificatesPEM.IsNull() || m.CACertificatesPEM.IsUnknown() {
		return nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	certificates, err := parseCertificates(m.CACertificatesPEM.ValueString())
	if err != nil {
		validate.ErrorAt(diags, path.Root("ca_certificates_pem"), wording.InvalidCertificates.Because(err))
	}
	for _, certificate := range certificates {
		pool.AddCert(certificate)
	}
	return pool
}

// parseCertificates reads all certificates of a text, in which there may be other text between them. encoding/pem
// would skip a damaged one without an error. Errors never repeat the text, which may contain a private key.
func parseCertificates(text string) (found []*x509.Certificate, _ error) {
	const begin, end = "\n-----BEGIN ", "\n-----END "
	var lines strings.Builder
	lines.WriteString("\n")
	for line := range strings.Lines(text) { // each of the files that were joined may have started with a byte order mark
		lines.WriteString(strings.TrimFunc(line, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' }) + "\n")
	}
	before, rest, _ := strings.Cut(lines.String(), begin)
	if rest == "" {
		return nil, errors.New("the text contains no certificate in PEM format (-----BEGIN CERTIFICATE-----): " +
			"set the content of a file, not its name: file(\"ca.pem\")")
	}
	if strings.Contains(before, end) {
		return nil, errors.New("certificate 1 has no line -----BEGIN CERTIFICATE-----")
	}
	for i, text := range strings.Split(rest, begin) {
		label, _, _ := strings.Cut(text, "\n")
		block, after := pem.Decode([]byte(strings.TrimPrefix(begin, "\n") + text))
		switch {
		case strings.Contains(label, "PRIVATE KEY"):
			return nil, fmt.Errorf("block %d is a private key, which does not belong here: remove it", i+1)
		case block == nil:
			return nil, fmt.Errorf("certificate %d is damaged or cut off", i+1)
		case block.Type != "CERTIFICATE":
			return nil, fmt.Errorf("block %d is no certificate (-----BEGIN CERTIFICATE-----): remove it", i+1)
		case strings.Contains("\n"+string(after), end):
			return nil, fmt.Errorf("certificate %d has no line -----BEGIN CERTIFICATE-----", i+2)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d cannot be used, so remove it unless the service needs it: %w", i+1, err)
		}
		found = append(found, certificate)
	}
	return found, nil
}
