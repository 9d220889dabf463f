// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package escape makes text that is not ours safe to show.
package escape

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxShown is the length, in characters, at which text from the service is cut
// before it is shown: enough for a sentence, too little to flood a terminal.
const maxShown = 512

// Printable makes text that came from the service safe to show: control,
// format and bidirectional characters and broken UTF-8 are escaped, and the
// result is cut to 512 characters.
func Printable(text string) string { return escape(text, maxShown) }

// All is Printable without the cut, for a text of ours with others in it.
func All(text string) string { return escape(text, math.MaxInt) }

func escape(text string, most int) string {
	var b strings.Builder
	shown := 0
	for rest := text; rest != ""; {
		r, width := utf8.DecodeRuneInString(rest)
		piece := rest[:width]
		switch {
		case r == utf8.RuneError && width == 1:
			piece = fmt.Sprintf(`\x%02x`, rest[0])
		case !unicode.IsPrint(r): // it moves the cursor, reorders the line or cannot be seen
			piece = fmt.Sprintf(`\u%04x`, r)
		}
		rest = rest[width:]
		shown += utf8.RuneCountInString(piece)
		if shown > most-1 && rest != "" || shown > most {
			b.WriteRune('…')
			break
		}
		b.WriteString(piece)
	}
	return b.String()
}
