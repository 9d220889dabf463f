// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package place

import (
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// CanonicalURL returns the one spelling of an absolute URL that identifies a service in a scope,
// which must be the same however a person writes the URL. Requests keep what was written.
func CanonicalURL(u *url.URL) *url.URL {
	c := u.ResolveReference(u) // a copy, without dot segments
	c.Scheme = strings.ToLower(c.Scheme)
	name := strings.ToLower(c.Hostname())
	if ascii, err := idna.Lookup.ToASCII(name); err == nil { // else it is an address, or has an underscore
		name = ascii
	}
	name = strings.TrimRight(name, ".")
	if address, err := netip.ParseAddr(name); err == nil && address.Is6() {
		name = "[" + address.String() + "]"
	}
	port := c.Port()
	if c.Host = name; port != "" && port != map[string]string{"https": "443", "http": "80"}[c.Scheme] {
		c.Host += ":" + port
	}
	escaped := strings.TrimRight(c.EscapedPath(), "/")
	if path, err := url.PathUnescape(escaped); err == nil { // an escaped path is one
		c.Path, c.RawPath = path, escaped
	}
	return c
}
