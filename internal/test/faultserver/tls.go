// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultserver

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// Certificate is what the server shows of itself. Each server has an authority
// of its own.
type Certificate int

// The certificates. Whether one is trusted is the client's matter: it may have
// got the server's Authority or not.
const (
	NoCertificate Certificate = iota
	GoodCertificate
	ExpiredCertificate
	WrongNameCertificate
)

// serverTLS returns the server's side and the authority in PEM form.
func serverTLS(t testing.TB, certificate Certificate) (*tls.Config, string) {
	t.Helper()
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "faultserver authority"},
		NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "faultserver"},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	switch certificate {
	case ExpiredCertificate:
		leaf.NotAfter = now.Add(-time.Hour)
	case WrongNameCertificate:
		leaf.IPAddresses, leaf.DNSNames = nil, []string{"elsewhere.invalid"}
	}
	signedAuthority := sign(t, authority, authority, nil)
	signedLeaf := sign(t, leaf, authority, signedAuthority.PrivateKey)
	config := &tls.Config{Certificates: []tls.Certificate{signedLeaf}, MinVersion: tls.VersionTLS12}
	return config, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signedAuthority.Certificate[0]}))
}

// sign gives a certificate a key; without one of the parent it is signed by its own.
func sign(t testing.TB, certificate, parent *x509.Certificate, parentKey crypto.PrivateKey) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.CreateCertificate(rand.Reader, certificate, parent, &key.PublicKey, cmp.Or(parentKey, crypto.PrivateKey(key)))
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}
}
