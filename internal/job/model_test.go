// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"net/url"
	"strings"
	"testing"
)

// What is the same prompt, for states and journals: their hashes depend on it.
func TestCanonical(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\n\nb":                            "a\n\nb",
		"a\r\n\r\nb\r\n":                    "a\n\nb",
		"a\r\r\nb":                          "a\nb",
		"\ufeffa \n\u00a0\n\t b\t\n \v\n\r": "a\n\n\t b",
		"\ufeff \r\n":                       "",
		// What is a change.
		"a\rb":       "a\rb",
		"a  b":       "a  b",
		" a":         " a",
		"\n\na":      "\n\na",
		"a\n\n\nb":   "a\n\n\nb",
		"a\ufeffb":   "a\ufeffb",
		"a\u200b\n":  "a\u200b",
		"A\u0308.\n": "A\u0308.",
	} {
		if got := canonical(text); got != want {
			t.Errorf("canonical(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestWebLink_P03(t *testing.T) {
	t.Parallel()
	longest := "https://example.com/" + strings.Repeat("a", maxLinkLength-len("https://example.com/"))
	for want, links := range map[bool][]string{
		true: {
			"https://github.com/acme/docs.md/pull/1/files#diff-1", "http://127.0.0.1:8787/pull/1", "HTTPS://git_1.example.com", longest,
			"https://gitlab.example.com/a/b/c++/-/merge_requests/1/diffs?view=inline#note_1", "https://bitbucket.org/acme/docs/pull-requests/1",
			"https://git.example.com:7990/context/projects/~me/repos/docs/pull-requests/1/overview",
			"https://dev.azure.com/acme/my%20docs/_git/x/pullrequest/1?_a=files", "https://acme.visualstudio.com/docs/_git/docs/pullrequest/1",
			"https://xn--bcher-kva.example/", "https://example.com?a", "https://example.com#b",
		},
		false: {
			"", "/pull/1", "//example.com/1", "https:example.com/1", "https:///pull/1", "https://", "https://:443/", "ftp://example.com/1",
			"javascript:alert(1)//https://example.com/", " https://example.com/", longest + "a",
			"https://github.com@evil.example/", "https://github.com:443@evil.example/", "https://user:pass@example.com/", "https://@example.com/",
			`https://evil.example\@github.com/`, `https:\\example.com/`, "https://github.com%2f@evil.example/", "https://github%2ecom/",
			"https://gіthub.com/", "https://github.com\u2044pull.evil.example/", "https://github.com。evil.example/", "https://bücher.example/",
			"https://example.com/\u202e1", "https://example.com/\u200b1", "https://example.com/é", "https://example.com/\xff",
			"https://example.com/ 1", "https://example.com/\n", "https://example.com/\x1b[2J", "https://example.com/\x00",
			"https://example.com/\"><b>", "https://example.com/`id`", "https://example.com/{1}|^", "https://example.com:80x/", "https://[::1/", "http://[::1]:80/",
			"https://x/a)[text](https://evil)", "https://x/a]", "https://x/a?b[]=1", "https://x/$(id)", "https://x/$HOME", "https://x/a;id",
			"https://x/a&b", "https://x/?a=1&b=2", "https://x/a|b", "https://x/'", "https://x/a*", "https://x/!x", "https://x/a,b", "https://x/@a",
			"https://x/a:~root", "https://x/a<b", "https://x/%", "https://x/%2", "https://x/%zz", "https://x/%%20",
		},
	} {
		for _, link := range links {
			if got := webLink(link); got != want {
				t.Errorf("webLink(%q) = %t, want %t", link, got, want)
			}
		}
	}
}

// Whoever reads a link sees the host that it leads to, and nothing in it ends a Markdown link or a word of a shell.
func FuzzWebLink(f *testing.F) {
	for _, seed := range []string{"https://github.com/acme/docs/pull/1", "http://x:1/?a#b", "https://a@b", "https://x/a)[b](c", "https://x/%41", "https://[::1]/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, link string) {
		if !webLink(link) {
			return
		}
		if u, err := url.Parse(link); err != nil || u.User != nil || u.Host == "" || !strings.HasPrefix(link[len(u.Scheme):], "://"+u.Host) {
			t.Errorf("%q is a link: %v, %v", link, u, err)
		}
		if strings.ContainsAny(link, " \t\r\n\"'`()[]{}<>$;|&*!\\^,@") {
			t.Errorf("%q is a link", link)
		}
	})
}
