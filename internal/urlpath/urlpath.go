// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package urlpath reads the paths of URLs.
package urlpath

import (
	"net/url"
	"strings"
)

// Segments splits the path of a URL, each segment unescaped by itself, so that an
// escaped slash cannot move a name into another place.
func Segments(parsed *url.URL) (segments []string, ok bool) {
	for segment := range strings.SplitSeq(strings.Trim(parsed.EscapedPath(), "/"), "/") {
		name, err := url.PathUnescape(segment)
		if err != nil || name == "" || strings.ContainsRune(name, '/') {
			return nil, false
		}
		segments = append(segments, name)
	}
	return segments, true
}
