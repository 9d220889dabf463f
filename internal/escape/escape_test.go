// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package escape

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	fill := strings.Repeat("a", maxShown-6)
	for name, tc := range map[string]struct{ text, want string }{
		"text":                {"Über 9000: \"ünïcode\" <b> & ${x} 🚀", "Über 9000: \"ünïcode\" <b> & ${x} 🚀"},
		"C0":                  {"a\x00b\x07c\x1b[2Jd\r\n\te", `a\u0000b\u0007c\u001b[2Jd\u000d\u000a\u0009e`},
		"bidi":                {"a\u202eb\u2066c\u200fd\u061ce", `a\u202eb\u2066c\u200fd\u061ce`},
		"separators":          {"a\u2028b\u2029c\u00a0d\u3000e", `a\u2028b\u2029c\u00a0d\u3000e`},
		"invalid UTF-8":       {"a\xffb\xc3", `a\xffb\xc3`},
		"replacement":         {"a\ufffdb", "a\ufffdb"},
		"513 are cut":         {strings.Repeat("ä", 513), strings.Repeat("ä", 511) + "…"},
		"escape just fits":    {fill + "\x1b", fill + `\u001b`},
		"escape is not split": {fill + "\x1b" + "b", fill + "…"},
		"escape fits no more": {fill + "b\x1b", fill + "b…"},
		"byte just fits":      {fill + "ab\xff", fill + `ab\xff`},
		"byte is not split":   {fill + "abc\xff", fill + "abc…"},
	} {
		if got := Printable(tc.text); got != tc.want {
			t.Errorf("%s: Printable(%.600q)\n got %q\nwant %q", name, tc.text, got, tc.want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	for _, seed := range []string{"", "text", "a\x1b[2Jb", "\x7f\u009b\u202e", "\xff\xc3", strings.Repeat("a", 511) + "\n", strings.Repeat("é", 513), strings.Repeat("\n", 86), "\U000e0001"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Printable(text)
		if n := utf8.RuneCountInString(got); n > maxShown || !utf8.ValidString(got) {
			t.Errorf("Printable(%q) = %q, %d characters", text, got, n)
		}
		isOdd := func(r rune) bool {
			return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r != ' ' && unicode.IsSpace(r)
		}
		if strings.ContainsFunc(got, isOdd) || Printable(got) != got {
			t.Errorf("Printable(%q) = %q, which is not printable", text, got)
		}
	})
}
