// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

func validCertificates() validator.String {
	return check.Rule{Summary: wording.InvalidCertificates, Accepts: "certificates in PEM format", Check: func(text string) error {
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
		check.ErrorAt(diags, path.Root("ca_certificates_pem"), wording.InvalidCertificates.Because(err))
	}
	for _, certificate := range certificates {
		pool.AddCert(certificate)
	}
	return pool
}

// parseCertificates reads all certificates of a text. encoding/pem would skip a damaged one without
// an error. Errors never repeat the text, which may contain a private key.
func parseCertificates(text string) (found []*x509.Certificate, _ error) {
	text = strings.ReplaceAll(text, "\ufeff", "") // each of the files that were joined may have started with a byte order mark
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil || block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("block %d, %.50q, is no certificate that can be used: remove it, unless the service needs it",
				len(found)+1, block.Type)
		}
		found = append(found, certificate)
	}
	begun, ended := strings.Count("\n"+text, "\n-----BEGIN "), strings.Count("\n"+text, "\n-----END ")
	switch {
	case begun == 0:
		return nil, errors.New("the text contains no certificate in PEM format (-----BEGIN CERTIFICATE-----): " +
			"set the content of a file, not its name: file(\"ca.pem\")")
	case len(found) != begun || len(found) != ended:
		return nil, fmt.Errorf("a certificate is damaged or cut off: the text has %d lines -----BEGIN, %d lines -----END, "+
			"and whole certificates: %d", begun, ended, len(found))
	}
	return found, nil
}
