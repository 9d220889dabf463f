// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package place

import (
	"net/url"
	"testing"
)

// The first of each row is canonical, and stays as it is: journals have it in their scopes. The rest of a row are other
// spellings of it, and each row is another service.
func TestCanonicalURL(t *testing.T) {
	for _, spellings := range [][]string{
		{"https://api.example.com", "HTTPS://API.Example.com", "https://api.example.com:443", "https://api.example.com:", "https://api.example.com.",
			"https://API.example.com.:443//", "https://api.example.com/", "https://api.example.com/./", "https://api.example.com/a/.."},
		{"https://api.example.com/v1", "https://api.example.com/v1/", "https://api.example.com/v1//", "https://api.example.com:443/a/../v1/."},
		{"https://api.example.com/V1"},
		{"https://api.example.com//v1"}, // servers may tell these apart
		{"https://api.example.com/a%2Fb", "https://API.example.com/a%2Fb/"},
		{"https://api.example.com/a/b"},
		{"https://api.example.com/a%2F"},
		{"https://api.example.com/a"},
		{"https://api.example.com:80"},
		{"http://api.example.com", "http://api.example.com:80"},
		{"http://api.example.com:443"},
		{"https://xn--bcher-kva.example", "https://bücher.example", "https://BÜCHER.example.", "https://XN--BCHER-KVA.example:443", "https://b%C3%BCcher.example",
			"https://bu\u0308cher\u3002example\u3002"}, // decomposed, with ideographic full stops
		{"https://under_score.example", "https://Under_Score.example.:443"},
		{"https://a--b---c.example", "https://A--B---C.example"},
		{"http://127.0.0.1:8787", "http://127.0.0.1.:8787/"},
		{"http://localhost:8787", "http://LOCALHOST:8787"},
		{"http://[::1]", "http://[0:0::1]:80"},
		{"http://[::ffff:127.0.0.1]:8787", "http://[::FFFF:7f00:1]:8787"},
		{"http://[fe80::1%25eth0]:8787", "http://[FE80::1%25eth0]:8787"},
		{"https://[::ffff:1]/c", "https://[::FFFF:1]:443/a%2Fb/../c"},
		{"http://0", "http://0.."},
	} {
		for _, spelling := range spellings {
			u, err := url.Parse(spelling)
			if err != nil {
				t.Fatal(err)
			}
			if got := CanonicalURL(u).String(); got != spellings[0] {
				t.Errorf("%s is %s, want %s", spelling, got, spellings[0])
			}
		}
	}
}
